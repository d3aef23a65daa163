#!/usr/bin/env python3
"""Measures what a person waits for: starting, listing, one scripted turn, memory.

Usage: tests/bench/first_path.py [BINARY]      (default: target/release/openvaala, built before)

Everything happens in a temporary folder, without a model and without a key. Prints one line a figure.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/openvaala")


def main():
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, "project")
        os.mkdir(folder)
        with open(os.path.join(folder, "README.md"), "w") as readme:
            readme.write("# Thing\n\nA thing to look at.\n")
        environment = {"PATH": os.environ["PATH"], "HOME": home, "OPENVAALA_NO_PROBE": "1"}

        def run(*arguments):
            began = time.perf_counter()
            done = subprocess.run([BINARY, *arguments], env=environment, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{arguments} failed:\n{done.stderr}")
            return (time.perf_counter() - began) * 1000, done.stdout

        def memory():
            return re.search(r"memory\s+(\S+ \S+)", run("serve", "status")[1]).group(1)

        try:
            cold = []
            for _ in range(20):
                cold.append(run("list")[0])
                run("serve", "stop")
            show("first command, which starts the server", cold)
            run("list")
            show("the same with the server running", [run("list")[0] for _ in range(30)])
            print(f"memory of the server, idle: {memory()}")
            show("exec with the demo: 3 answers, 2 tools", [run("exec", "look around")[0] for _ in range(30)])
            print(f"memory of the server after 30 conversations: {memory()}")
        finally:
            subprocess.run([BINARY, "serve", "stop"], env=environment, capture_output=True)


def show(name, figures):
    print(
        f"{name}: median {statistics.median(figures):.1f} ms "
        f"({min(figures):.1f} to {max(figures):.1f}, n = {len(figures)})"
    )


if __name__ == "__main__":
    main()
