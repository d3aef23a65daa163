"""The fake model as a child process, and what it has seen."""
import json
import os
import subprocess
import urllib.request

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake_model", "server.mjs")


class FakeModel:
    """Runs while the `with` block does."""

    def __init__(self, node):
        self.process = subprocess.Popen([node, SERVER, "--port", "0"], stdout=subprocess.PIPE, text=True)
        # "fake model on http://127.0.0.1:12345"
        line = self.process.stdout.readline()
        if " on " not in line:
            raise SystemExit(f"the fake model did not start: {line!r}")
        self.url = line.split(" on ")[1].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)

    def trace(self, name):
        """The requests of a turn in order: arrival and end of the answer (ms of one clock), bytes, steps done before."""
        return sorted(self.get("/trace?id=" + name))
