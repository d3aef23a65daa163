"""A client of the OpenVaala server, written from docs/protocol.md alone: asks something, and shows the answer as it comes.

usage: client.py DISCOVERY_FILE FOLDER PROMPT      (pip install websockets)
"""

import hmac, http.client, json, re, secrets, sys, uuid
from websockets.sync.client import connect

PATH = "/api/v1/openvaala"

def proof(label, token, *nonces):
    text = label + b"".join(bytes.fromhex(nonce) for nonce in nonces)
    return hmac.new(bytes.fromhex(token), text, "sha256").hexdigest()

def open_socket(address, token):
    """Challenge and upgrade on one connection; the token itself is never sent."""
    mine, first = secrets.token_hex(32), http.client.HTTPConnection(address)
    first.request("GET", PATH + "/challenge", headers={"X-OpenVaala-Nonce": mine})
    theirs = json.loads(first.getresponse().read())
    if not hmac.compare_digest(theirs["proof"], proof(b"openvaala server v1", token, mine, theirs["nonce"])):
        sys.exit("this is not the server that wrote the file")
    header = "OpenVaala " + proof(b"openvaala client v1", token, mine, theirs["nonce"])
    return connect(f"ws://{address}{PATH}", sock=first.sock, compression=None, max_size=64 << 20,
                   additional_headers={"Authorization": header})

class Client:
    def __init__(self, socket):
        self.socket, self.last, self.notices = socket, 0, []
    def call(self, method, **params):
        self.last += 1
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        while "method" in (message := json.loads(self.socket.recv())):
            self.notices.append(message)
        if "error" in message:
            sys.exit(f"{method}: {message['error']['message']}")
        return message["result"]
    def notice(self):
        return self.notices.pop(0) if self.notices else json.loads(self.socket.recv())

def main(file, folder, prompt):
    found = dict(re.findall(r"^(\w+): '?\"?([^'\"\n]*)", open(file).read(), re.M))
    with open_socket(found["address"], found["token"]) as socket:
        client = Client(socket)
        client.call("initialize", protocol_version="0.1", client={"name": "python", "version": "1"})
        where = [{"executor": "local", "root": folder}]
        conversation = client.call("conversation/create", executors=where)["conversation"]["id"]
        client.call("conversation/subscribe", conversation_id=conversation)
        client.call("session/send", conversation_id=conversation, item_id=str(uuid.uuid4()),
                    content=[{"type": "text", "text": prompt}], mode="queue")
        kinds, turn = {}, {}
        while not turn.get("ended_at"):
            params = client.notice()["params"]
            live, turn = params.get("live", {}), params.get("entry", {}).get("turn", {}).get("turn", {})
            if started := live.get("started"):
                kinds[started["item_id"]] = started["kind"]
            if (delta := live.get("delta")) and kinds.get(delta["item_id"]) == "assistant_message":
                print(delta["text"], end="", flush=True)
        print("\n" + turn["status"])

main(*sys.argv[1:])
