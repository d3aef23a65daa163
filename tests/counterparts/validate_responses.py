#!/usr/bin/env python3
"""Checks Responses request bodies against the vendor's own API description.

Reads a JSON array of request bodies from stdin and prints one JSON line:
{"checked": n, "errors": ["request 0: at input/1: …", …]}.
Exit code: 0 all valid, 1 some request is not, 2 the input or the set-up is wrong.
"""

import json
import sys

from bodies import schema_errors
from validate_chat import run, unknown_fields

SCHEMA = "CreateResponse"

# What the description asks of an assistant's message although the service does not:
# a client that stores nothing has no ids, and the vendor's own command line sends none.
NOT_ASKED_FOR = {"id": "msg_1", "status": "completed"}
NOT_ASKED_FOR_IN_TEXT = {"annotations": [], "logprobs": []}


def completed(item):
    """Returns an input item, an assistant's message with what the description asks for in vain."""
    if not isinstance(item, dict) or item.get("role") != "assistant" or not isinstance(item.get("content"), list):
        return item
    content = [
        {**NOT_ASKED_FOR_IN_TEXT, **part} if isinstance(part, dict) and part.get("type") == "output_text" else part
        for part in item["content"]
    ]
    return {**NOT_ASKED_FOR, **item, "content": content}


def pairing_errors(items):
    """Yields what no schema sees: every call is answered once, before anybody speaks again."""
    waiting = []
    used = set()
    for place, item in enumerate(items):
        kind = item.get("type")
        name = item.get("call_id")
        if kind == "function_call_output":
            if name in waiting:
                waiting.remove(name)
            else:
                yield f"at input/{place}: an output for {name!r}, which no open call has"
        elif kind == "function_call":
            if name in used:
                yield f"at input/{place}: the call id {name!r} is used twice"
            used.add(name)
            waiting.append(name)
            try:
                parsed = json.loads(item.get("arguments"))
            except (TypeError, ValueError):
                parsed = None
            if not isinstance(parsed, dict):
                yield f"at input/{place}: the arguments of {name!r} are not a JSON object"
        elif waiting:
            yield f"at input/{place}: the calls {waiting} have no output before this item"
            waiting = []
    if waiting:
        yield f"at the end: the calls {waiting} have no output"


def stateless_errors(body):
    """Yields what a service that is asked to store nothing would not find again."""
    if body.get("store") is not False:
        yield "at store: the service would keep the answer"
    if "previous_response_id" in body:
        yield "at previous_response_id: the service has stored no answer"
    for place, item in enumerate(body["input"]):
        kind = item.get("type")
        if kind == "item_reference":
            yield f"at input/{place}: a reference to an item that is not stored"
        elif kind == "reasoning" and not item.get("encrypted_content") and not item.get("content"):
            yield f"at input/{place}: a thought of which the service knows no more than its id"


def request_errors(body, validator, keys):
    """Yields every reason why the vendor would refuse one request body."""
    items = body.get("input")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        yield "at input: is no list of items"
        return
    checked = {**body, "input": [completed(item) for item in items]}
    yield from schema_errors(checked, validator)
    yield from unknown_fields(body, keys)
    if not isinstance(body.get("model"), str):
        yield "at the top: there is no model"
    yield from pairing_errors(items)
    yield from stateless_errors(body)


if __name__ == "__main__":
    sys.exit(run(__doc__, SCHEMA, request_errors))
