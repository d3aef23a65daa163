#!/usr/bin/env python3
"""Runs the benchmark; `tests/bench/run` sets up what it needs. See README.md."""
import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time

import uvloop

from drivers.codex import Codex
from drivers.openvaala import OpenVaala
from harness import floors, machine, measures, report
from harness.model import FakeModel

PATIENCE = 300  # seconds that one measure of one product may take


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the openvaala binary")
    parser.add_argument("--codex", help="the folder where @openai/codex is installed; without it ours runs alone")
    parser.add_argument("--node", default="node")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(measures.ALL), help="measures, separated by commas")
    parser.add_argument("--scratch", required=True, help="a folder on the disk to measure")
    parser.add_argument("--out", required=True, help="where the results are written as JSON")
    given = parser.parse_args()
    given.only = given.only.split(",")
    unknown = set(given.only) - set(measures.ALL)
    if unknown:
        parser.error(f"no measure {', '.join(sorted(unknown))}; there are {', '.join(measures.ALL)}")
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    return given


async def main():
    given = arguments()
    products = [(OpenVaala, os.path.abspath(given.binary))]
    if given.codex:
        products.append((Codex, os.path.abspath(given.codex)))
    results = {"floor": {}, **{kind.name: {} for kind, _ in products}}
    loads, failures = [], []
    os.makedirs(given.scratch, exist_ok=True)
    with FakeModel(given.node) as model:
        versions = [version(kind, root, given.scratch) for kind, root in products]
        for number in range(given.rounds):
            note_floors(results["floor"], given.scratch)
            for name in given.only:
                # Each round begins with the other one, so that none always meets the warmer machine.
                for kind, root in products if number % 2 == 0 else reversed(products):
                    loads.append(machine.load())
                    said = await one(kind, root, model, name, given.scratch, failures)
                    print(f"round {number + 1} {kind.name} {name}: {said}", file=sys.stderr, flush=True)
                    for figure, value in said.items():
                        results[kind.name].setdefault(figure, []).append(value)
    load = {"min": min(loads), "max": max(loads)}
    names = [kind.name for kind, _ in products]
    versions = ", ".join(versions)
    with open(given.out, "w") as file:
        content = {"at": time.strftime("%FT%TZ", time.gmtime()), "rounds": given.rounds, "load": load, "versions": versions}
        json.dump({**content, "cores": os.cpu_count(), "results": results, "failures": failures}, file, indent=1)
    print(report.table(results, names))
    spread = f"load {load['min']:.1f} to {load['max']:.1f}, {os.cpu_count()} cores, rounds: {given.rounds}"
    print(f"\n{versions}; {spread}; a cell is the median of the rounds, in brackets their spread")
    for failure in failures:
        print(f"failed: {failure}")
    return 1 if failures else 0


def version(kind, root, scratch):
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        return kind(root, folder, "").version()


def note_floors(figures, scratch):
    figures.setdefault("fdatasync_ms", []).append(floors.fdatasync_ms(scratch))
    figures.setdefault("bash_ms", []).append(floors.bash_ms())


async def one(kind, root, model, name, scratch, failures):
    """One measure of one product in a folder of its own; what fails is noted and gives no figure."""
    folder = tempfile.mkdtemp(prefix=f"{kind.name}-{name}-", dir=scratch)
    driver = kind(root, folder, model.url)
    try:
        figures = await asyncio.wait_for(measures.ALL[name](measures.Bench(driver, model)), PATIENCE)
        await driver.stop()
    except Exception as error:  # a product that fails must not end the run of the others
        failures.append(f"{kind.name} {name}: {error or type(error).__name__}; its folder is {folder}")
        return {}
    finally:
        driver.kill()
    shutil.rmtree(folder)
    return {figure: round(value, 4) for figure, value in figures.items()}


if __name__ == "__main__":
    uvloop.install()
    sys.exit(asyncio.run(main()))
