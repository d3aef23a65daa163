"""What the kernel tells about a process and its descendants."""
import os

TICKS = os.sysconf("SC_CLK_TCK")


def stat_fields(pid):
    """The fields of /proc/PID/stat behind the name, which may hold anything; `None` if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            line = file.read()
    except OSError:
        return None
    return line[line.rindex(")") + 2 :].split()


def family(roots):
    """The given processes and all their descendants."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        fields = stat_fields(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(pid))
    found, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def memory(roots):
    """Resident and proportional memory of the family, in MiB."""
    kib = {"Rss": 0, "Pss": 0}
    for pid in family(roots):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                for line in file:
                    name = line.split(":")[0]
                    if name in kib:
                        kib[name] += int(line.split()[1])
        except OSError:
            pass
    return kib["Rss"] / 1024, kib["Pss"] / 1024


def cpu_ms(roots):
    """Processor time of the family and of its ended children that were waited for, in ms; steps of 10 ms."""
    ticks = 0
    for pid in family(roots):
        fields = stat_fields(pid)
        if fields:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks * 1000 / TICKS


def load():
    """The load average of the last minute."""
    return os.getloadavg()[0]
