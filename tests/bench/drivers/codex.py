"""codex app-server over WebSocket (npm package @openai/codex)."""
import glob
import os
import socket

from .base import Driver, websocket

CONFIG = """model = "fake"
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = 10000000
[model_providers.bench]
name = "bench"
base_url = "{url}/v1"
wire_api = "responses"
[analytics]
enabled = false
"""


class Codex(Driver):
    name = "codex"
    # Of the tools that it offers the fake model calls the first that it has arguments for.
    tool = None

    def binary(self):
        found = glob.glob(self.root + "/node_modules/@openai/codex-*/vendor/*/**/codex", recursive=True)
        found = [path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)]
        if not found:
            raise SystemExit(f"there is no codex binary in {self.root}/node_modules")
        return found[0]

    async def start(self):
        home = self.home + "/.codex"
        os.makedirs(home, exist_ok=True)
        with open(home + "/config.toml", "w") as file:
            file.write(CONFIG.format(url=self.model_url))
        url = f"ws://127.0.0.1:{free_port()}"
        self.spawn([self.binary(), "app-server", "--listen", url], CODEX_HOME=home)
        self.connected(await self.wait_for("a WebSocket", lambda: websocket(url)))
        client = {"name": "bench", "title": "bench", "version": "0"}
        await self.call("initialize", {"clientInfo": client})
        await self.tell("initialized", {})

    def notified(self, method, params):
        turn = self.turns.get(params.get("threadId"))
        if turn is None:
            return
        turn.events += 1
        if method == "item/agentMessage/delta":
            turn.delta(params["delta"])
        elif method == "turn/completed":
            turn.end(params["turn"]["status"])

    async def open(self):
        params = {"cwd": self.project, "approvalPolicy": "never", "sandbox": "danger-full-access"}
        return (await self.call("thread/start", params))["thread"]["id"]

    async def begin(self, session, text):
        await self.call("turn/start", {"threadId": session, "input": [{"type": "text", "text": text}]})


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
