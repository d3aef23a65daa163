"""The measures. Each takes a way to make a driver and gives figures by name; none knows a product."""
import asyncio
import itertools
import statistics
import time

from . import machine

# How many times a short thing is done in one round; its figure is the median.
REPEAT = 10
STEPS = 50
LONG_STEPS = 500
TOKENS = 5000
SESSIONS = 50
SESSION_STEPS = 10
OPEN_SESSIONS = 100

names = itertools.count(1)


class Bench:
    """One product in one measure."""

    def __init__(self, driver, model):
        self.driver, self.model = driver, model

    async def turn(self, session, steps=0, tokens=20):
        """Runs a scripted turn; `gaps` is what the product takes between two answers of the model, in ms."""
        name = f"{self.driver.name}{next(names)}"
        keys = {"id": name, "steps": steps, "tokens": tokens}
        if self.driver.tool:
            keys["tool"] = self.driver.tool
        script = " ".join(f"{key}={value}" for key, value in keys.items())
        began = time.monotonic()
        turn = await self.driver.turn(session, f"Go. [[bench {script}]]")
        wall = (turn.ended.result()[1] - began) * 1000
        trace = await asyncio.to_thread(self.model.trace, name)
        if len(trace) != steps + 1:
            raise RuntimeError(f"{name} made {len(trace)} requests and not {steps + 1}")
        if turn.text != sum(len(token(number)) for number in range(tokens)):
            raise RuntimeError(f"the client of {name} got {turn.text} characters of {tokens} tokens")
        own = sum(end - arrival for arrival, end, *_ in trace)
        gaps = [after[0] - before[1] for before, after in zip(trace, trace[1:])]
        return {"wall": wall, "own": own, "gaps": gaps, "turn": turn, "began": began, "trace": trace}

    def cpu(self):
        return machine.cpu_ms(self.driver.pids())


def token(number):
    """What the fake model says as its token of that number."""
    return "tok\n" if number % 12 == 11 else "tok "


async def start(bench):
    """From process start to the first useful answer, in a home that was used before; then its memory at rest."""
    driver = bench.driver
    began = time.monotonic()
    await driver.start()
    first = (time.monotonic() - began) * 1000
    await asyncio.sleep(0.5)
    await driver.stop()
    times, cpu = [], []
    for _ in range(REPEAT):
        began = time.monotonic()
        await driver.start()
        times.append((time.monotonic() - began) * 1000)
        cpu.append(bench.cpu())
        await asyncio.sleep(0.2)
        if len(times) < REPEAT:
            await driver.stop()
    await asyncio.sleep(1.5)
    rss, pss = machine.memory(driver.pids())
    figures = {"start_first_ms": first, "start_ms": statistics.median(times)}
    return {**figures, "start_cpu_ms": statistics.mean(cpu), "idle_rss_mib": rss, "idle_pss_mib": pss}


async def turn(bench):
    """A turn without tools in a new session: its time less that of the model."""
    driver = bench.driver
    await driver.start()
    await bench.turn(await driver.open())
    cpu, over = bench.cpu(), []
    for _ in range(2 * REPEAT):
        done = await bench.turn(await driver.open())
        over.append(done["wall"] - done["own"])
    cpu = (bench.cpu() - cpu) / len(over)
    size = done["trace"][0][2]
    return {"turn_ms": statistics.median(over), "turn_cpu_ms": cpu, "first_request_bytes": size}


async def step(bench):
    """A turn of 50 tool calls: the time between an answer of the model and the next request."""
    driver = bench.driver
    await driver.start()
    await bench.turn(await driver.open(), steps=2)
    medians, cpu = [], []
    for _ in range(3):
        session, before = await driver.open(), bench.cpu()
        done = await bench.turn(session, steps=STEPS)
        cpu.append((bench.cpu() - before) / STEPS)
        medians.append(statistics.median(done["gaps"]))
    return {"step_ms": statistics.median(medians), "step_cpu_ms": statistics.median(cpu)}


async def growth(bench):
    """A turn of 500 tool calls: the first 50 steps beside the last 50."""
    driver = bench.driver
    await driver.start()
    await bench.turn(await driver.open(), steps=2)
    session, before = await driver.open(), bench.cpu()
    done = await bench.turn(session, steps=LONG_STEPS)
    cpu = (bench.cpu() - before) / LONG_STEPS
    early, late = (statistics.median(part) for part in (done["gaps"][:50], done["gaps"][-50:]))
    figures = {"step_1_50_ms": early, "step_451_500_ms": late, "growth": late / early, "long_step_cpu_ms": cpu}
    return {**figures, "long_rss_mib": machine.memory(driver.pids())[0], "last_request_bytes": done["trace"][-1][2]}


async def stream(bench):
    """5,000 tokens as fast as the model sends them: how many a second reach the client."""
    driver = bench.driver
    await driver.start()
    await bench.turn(await driver.open(), tokens=50)
    rates, cpu = [], []
    for _ in range(5):
        session, before = await driver.open(), bench.cpu()
        done = await bench.turn(session, tokens=TOKENS)
        cpu.append(bench.cpu() - before)
        rates.append(TOKENS / (done["turn"].ended.result()[1] - done["turn"].first))
    events = done["turn"].events
    return {"tokens_s": statistics.median(rates), "stream_cpu_ms": statistics.median(cpu), "stream_events": events}


async def crowd(bench):
    """50 sessions at once, each a turn of 10 tool calls."""
    driver = bench.driver
    await driver.start()
    await bench.turn(await driver.open(), steps=2)
    sessions = [await driver.open() for _ in range(SESSIONS)]
    cpu, model = bench.cpu(), machine.cpu_ms([bench.model.process.pid])
    began = time.monotonic()
    turns = [bench.turn(session, steps=SESSION_STEPS) for session in sessions]
    done = await asyncio.gather(*turns)
    wall = max(each["turn"].ended.result()[1] for each in done) - began
    steps = SESSIONS * SESSION_STEPS
    figures = {"crowd_steps_s": steps / wall, "crowd_cpu_ms_step": (bench.cpu() - cpu) / steps}
    model = (machine.cpu_ms([bench.model.process.pid]) - model) / steps
    return {**figures, "crowd_model_cpu_ms_step": model, "crowd_rss_mib": machine.memory(driver.pids())[0]}


async def memory(bench):
    """100 sessions that have each had a short turn."""
    driver = bench.driver
    await driver.start()
    for _ in range(OPEN_SESSIONS):
        await bench.turn(await driver.open(), tokens=5)
    await asyncio.sleep(1)
    rss, pss = machine.memory(driver.pids())
    return {"sessions_rss_mib": rss, "sessions_pss_mib": pss}


ALL = {measure.__name__: measure for measure in (start, turn, step, growth, stream, crowd, memory)}
