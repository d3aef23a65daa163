"""What a driver is: it starts a product without a screen, pointed at the fake model, and gives sessions and turns."""
import asyncio
import json
import os
import signal
import subprocess
import time

import websockets

# How often a product that starts is looked at.
LOOK_EVERY = 0.0005


class Turn:
    """What a client saw of one turn; `end` and `first` are readings of `time.monotonic`."""

    def __init__(self):
        self.events = 0
        self.text = 0
        self.said = None
        self.first = None
        self.ended = asyncio.get_running_loop().create_future()

    def delta(self, text):
        self.first = self.first or time.monotonic()
        self.text += len(text)

    def end(self, status):
        if not self.ended.done():
            self.ended.set_result((status, time.monotonic()))


class Driver:
    """One product with a home of its own."""

    name = "base"

    def __init__(self, root, folder, model_url):
        # root: the binary, or the folder where the product is installed.
        self.root, self.folder, self.model_url = root, folder, model_url
        self.home = os.path.join(folder, "home")
        self.project = os.path.join(folder, "project")
        for made in (self.home, self.project):
            os.makedirs(made, exist_ok=True)
        self.processes = []
        self.turns = {}
        self.calls = {}
        self.last_call = 0

    def spawn(self, arguments, **environment):
        """Starts a process whose output goes to a log in the folder of this run."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.home, **environment}
        with open(os.path.join(self.folder, self.name + ".log"), "ab") as log:
            process = subprocess.Popen(
                arguments,
                cwd=self.project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def binary(self):
        """The program that is measured."""
        return self.root

    def version(self):
        """What the program says that it is."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.home}
        said = subprocess.run([self.binary(), "--version"], env=environment, capture_output=True, text=True, check=True)
        return said.stdout.strip()

    def pids(self):
        return [process.pid for process in self.processes if process.poll() is None]

    async def wait_for(self, what, attempt):
        """Tries until an attempt gives something; an OSError counts as not yet."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                found = attempt()
                found = await found if asyncio.iscoroutine(found) else found
                if found:
                    return found
            except OSError:
                pass
            if not self.pids():
                raise RuntimeError(f"{self.name} ended by itself, see {self.folder}/{self.name}.log")
            await asyncio.sleep(LOOK_EVERY)
        raise RuntimeError(f"{self.name} did not give {what} within 60 s")

    async def start(self):
        """Starts the product; returns when its API has answered its first request."""
        raise NotImplementedError

    async def open(self):
        """Makes a session: any handle."""
        raise NotImplementedError

    async def begin(self, session, text):
        """Sends the text that begins a turn."""
        raise NotImplementedError

    def notified(self, method, params):
        """Takes in what the product tells by itself."""
        raise NotImplementedError

    async def turn(self, session, text):
        """Sends the text and waits for the end of the turn."""
        turn = self.turns[session] = Turn()
        await self.begin(session, text)
        status, _ = await turn.ended
        if status != "completed":
            raise RuntimeError(f"{self.name}: the turn ended as {status!r}")
        return turn

    async def stop(self):
        """Ends the product as a service manager would."""
        self.reading.cancel()
        await self.socket.close()
        for process in self.processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                await asyncio.to_thread(process.wait, 5)
            except subprocess.TimeoutExpired:
                self.kill()
        self.processes = []

    def kill(self):
        """Ends whatever is left."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    # JSON-RPC over a WebSocket

    def connected(self, socket):
        self.socket = socket
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        try:
            async for message in self.socket:
                self.received(json.loads(message))
        except websockets.ConnectionClosed:
            pass
        for call in self.calls.values():
            call.cancel()

    def received(self, message):
        if "method" in message and "id" not in message:
            self.notified(message["method"], message.get("params") or {})
        elif "method" not in message and message.get("id") in self.calls:
            call = self.calls.pop(message["id"])
            if "error" in message:
                call.set_exception(RuntimeError(f"{self.name}: {message['error']}"))
            else:
                call.set_result(message.get("result"))

    async def call(self, method, params):
        self.last_call += 1
        answer = self.calls[self.last_call] = asyncio.get_running_loop().create_future()
        await self.tell(method, params, id=self.last_call)
        return await answer

    async def tell(self, method, params, **more):
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}))


async def websocket(url, **options):
    """A WebSocket without compression, limits and pings of its own."""
    return await websockets.connect(url, max_size=None, compression=None, ping_interval=None, **options)
