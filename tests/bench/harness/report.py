"""Makes one table of all rounds."""
import statistics

# Figure, what it is, unit, bar for OpenVaala ("<" at most, ">" at least), floor it is compared with.
ROWS = [
    ("start_ms", "process start to first answer", "ms", ("<", 20), None),
    ("start_first_ms", "the same in a new home", "ms", None, None),
    ("start_cpu_ms", "processor time of a start", "ms", None, None),
    ("idle_rss_mib", "at rest, resident", "MiB", ("<", 16), None),
    ("idle_pss_mib", "at rest, proportional", "MiB", ("<", 16), None),
    ("sessions_rss_mib", "100 sessions after a turn each, resident", "MiB", None, None),
    ("turn_ms", "turn without tools, over the model's time", "ms", ("<", 6), "fdatasync_ms"),
    ("turn_cpu_ms", "processor time of that turn", "ms", None, None),
    ("first_request_bytes", "its request", "bytes", ("<", 10_000), None),
    ("step_ms", "tool step (`true` in bash)", "ms", ("<", 5), "step_floor_ms"),
    ("step_cpu_ms", "processor time of a step, bash included", "ms", None, "bash_ms"),
    ("step_1_50_ms", "turn of 500 steps: step 1-50", "ms", None, "step_floor_ms"),
    ("step_451_500_ms", "turn of 500 steps: step 451-500", "ms", ("<", 5), "step_floor_ms"),
    ("growth", "the second over the first", "", ("<", 1.2), None),
    ("long_step_cpu_ms", "processor time of a step of these", "ms", None, None),
    ("long_rss_mib", "resident after 500 steps", "MiB", None, None),
    ("tokens_s", "tokens a second to the client", "", None, None),
    ("stream_cpu_ms", "processor time of 5,000 tokens", "ms", None, None),
    ("crowd_steps_s", "50 sessions of 10 steps: steps a second", "", (">", 300), None),
    ("crowd_cpu_ms_step", "processor time of a step of these", "ms", None, None),
    ("crowd_model_cpu_ms_step", "the fake model's processor time for it", "ms", None, None),
    ("crowd_rss_mib", "resident after these", "MiB", None, None),
]
HIGHER_IS_BETTER = {"tokens_s", "crowd_steps_s"}


def table(results, products):
    """`results`: product (or `floor`) to figure to one value a round."""
    floor = {name: statistics.median(values) for name, values in results["floor"].items()}
    floor["step_floor_ms"] = floor["fdatasync_ms"] + floor["bash_ms"]
    ours, peers = products[0], products[1:]
    head = ["measure", "unit", *products, "bar", "x floor", *(f"{peer} / {ours}" for peer in peers)]
    lines = [row(head), row(["---"] * len(head))]
    for name, text in (("fdatasync_ms", "floor: append and fdatasync"), ("bash_ms", "floor: spawn of `bash -c true`")):
        lines.append(row([text, "ms", cell(results["floor"][name]), *[""] * (len(head) - 3)]))
    for name, text, unit, bar, base in ROWS:
        values = {product: results[product].get(name) for product in products}
        if not any(values.values()):
            continue
        own = statistics.median(values[ours]) if values[ours] else None
        cells = [cell(values[product]) for product in products]
        ratio = f"{own / floor[base]:.1f}" if base and own is not None else ""
        lines.append(row([text, unit, *cells, verdict(own, bar), ratio, *against(name, own, values, peers)]))
    return "\n".join(lines)


def against(name, own, values, peers):
    """How many times better ours is; under 1: worse."""
    for peer in peers:
        if not values[peer] or not own:
            yield "–"
            continue
        other = statistics.median(values[peer])
        yield f"{own / other if name in HIGHER_IS_BETTER else other / own:.1f}"


def verdict(own, bar):
    if bar is None or own is None:
        return ""
    sign, limit = bar
    met = own <= limit if sign == "<" else own >= limit
    return f"{'≤' if sign == '<' else '≥'} {limit:,}: {'met' if met else '**missed**'}"


def cell(values):
    """Median of the rounds, and their spread when there is more than one."""
    if not values:
        return "–"
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))} to {number(max(values))})"


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def row(cells):
    return "| " + " | ".join(cells) + " |"
