"""`openvaala serve` over its WebSocket; docs/protocol.md says how."""
import asyncio
import hmac
import json
import os
import re
import secrets
import socket
import uuid

from .base import Driver, websocket

PROTOCOL_VERSION = "0.1"
PATH = "/api/v1/openvaala"
SETTINGS = """default_model:
  provider: bench
  model: fake
step_limit: 1000
repeat_limit: 0
"""
PROVIDER = """type: openai_chat
base_url: {url}/v1
api_key: none
default_model: fake
"""


class OpenVaala(Driver):
    name = "openvaala"
    tool = "bash"

    async def start(self):
        config = self.home + "/.config/openvaala"
        os.makedirs(config + "/providers", exist_ok=True)
        write(config + "/openvaala.yaml", SETTINGS)
        write(config + "/providers/bench.yaml", PROVIDER.format(url=self.model_url))
        process = self.spawn([self.binary(), "serve"], OPENVAALA_NO_PROBE="1")
        address, token = await self.wait_for("its address", lambda: self.discovered(process.pid))
        self.connected(await connect(address, token))
        client = {"name": "bench", "version": "0"}
        await self.call("initialize", {"protocol_version": PROTOCOL_VERSION, "client": client})

    def discovered(self, pid):
        """Address and token from the discovery file of that process; `None` while it is another's."""
        with open(self.home + "/.local/state/openvaala/runtime-server.yaml") as file:
            found = dict(re.findall(r"^(\w+): *['\"]?([^'\"\n]*)", file.read(), re.MULTILINE))
        return (found["address"], found["token"]) if found.get("pid") == str(pid) else None

    def notified(self, method, params):
        turn = self.turns.get(params.get("conversation_id"))
        if turn is None:
            return
        turn.events += 1
        if method == "conversation/live":
            self.live(turn, params["live"])
        elif method == "conversation/entry":
            state = params["entry"].get("turn")
            if state and state["turn"]["status"] != "running":
                turn.end(state["turn"]["status"])
        elif method == "conversation/gap":
            turn.end("gap: the client was too slow")

    @staticmethod
    def live(turn, live):
        # Arguments of calls and outputs of tools grow by deltas too; only what the model says counts.
        if "started" in live and live["started"]["kind"] == "assistant_message":
            turn.said = live["started"]["item_id"]
        elif "delta" in live and live["delta"]["item_id"] == turn.said:
            turn.delta(live["delta"]["text"])

    async def open(self):
        location = {"executor": "local", "root": self.project}
        created = await self.call("conversation/create", {"executors": [location]})
        conversation = created["conversation"]["id"]
        await self.call("conversation/subscribe", {"conversation_id": conversation})
        return conversation

    async def begin(self, session, text):
        content = [{"type": "text", "text": text}]
        params = {"conversation_id": session, "item_id": str(uuid.uuid4()), "content": content}
        await self.call("session/send", params)


async def connect(address, token):
    """Proves both sides to each other, then opens the WebSocket on the same connection."""
    host, port = address.rsplit(":", 1)
    loop = asyncio.get_running_loop()
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    ours = secrets.token_hex(32)
    request = f"GET {PATH}/challenge HTTP/1.1\r\nHost: {address}\r\nX-OpenVaala-Nonce: {ours}\r\n\r\n"
    await loop.sock_sendall(connection, request.encode())
    answer = await read_json(loop, connection)
    nonces = bytes.fromhex(ours) + bytes.fromhex(answer["nonce"])
    if proof(token, b"openvaala server v1" + nonces) != answer["proof"]:
        raise RuntimeError(f"the process at {address} is not the server")
    authorization = "OpenVaala " + proof(token, b"openvaala client v1" + nonces)
    headers = {"Authorization": authorization}
    return await websocket(f"ws://{address}{PATH}", sock=connection, additional_headers=headers)


async def read_json(loop, connection):
    """The body of an HTTP answer that tells its length."""
    data = b""
    while True:
        piece = await loop.sock_recv(connection, 65536)
        if not piece:
            raise RuntimeError("the connection was closed in place of a challenge")
        data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if length and len(body) >= int(length[1]):
            return json.loads(body)


def proof(token, message):
    return hmac.new(bytes.fromhex(token), message, "sha256").hexdigest()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
