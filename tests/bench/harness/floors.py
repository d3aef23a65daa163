"""What disk and kernel give at best: the figures that no durable product can go below."""
import os
import statistics
import time

RECORD = b"x" * 511 + b"\n"


def fdatasync_ms(folder, count=500):
    """One append of 512 bytes and its fdatasync, on a growing file in that folder."""
    path = os.path.join(folder, "floor.tmp")
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        return median_ms(count, lambda: (os.write(file, RECORD), os.fdatasync(file)))
    finally:
        os.close(file)
        os.unlink(path)


def bash_ms(count=200):
    """posix_spawn of `bash -c true` and the wait for its end."""
    arguments, environment = ["/bin/bash", "-c", "true"], {"PATH": os.environ["PATH"]}

    def spawn():
        os.waitpid(os.posix_spawn(arguments[0], arguments, environment), 0)

    return median_ms(count, spawn)


def median_ms(count, action):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)
