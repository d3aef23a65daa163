#!/usr/bin/env python3
"""Checks Anthropic Messages request bodies against the types of the vendor's own client.

Reads a JSON array of request bodies from stdin and prints one JSON line:
{"checked": n, "errors": ["request 0: at messages/1: …", …]}.
Exit code: 0 all valid, 1 some request is not, 2 the input or the set-up is wrong.

The types come from the package anthropic (MessageCreateParams for streams). Beside them this checks the rules that
the API's documentation states in words, as far as an agent can break them.
"""

import re
import sys

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from bodies import check, schema_errors

ID = re.compile(r"^[a-zA-Z0-9_-]+$")
MOST_MARKS = 4
LEAST_BUDGET = 1024


class Generator(GenerateJsonSchema):
    """Makes a JSON Schema of types that also take what no JSON has, such as open files."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def handle_invalid_for_json_schema(self, schema, error_info):
        """Returns a schema that nothing matches."""
        return {"not": {}}


def tightened(node, answers):
    """Returns the schema without the choices that are types of answers, and with no unknown field allowed."""
    if isinstance(node, list):
        return [tightened(item, answers) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: tightened(value, answers) for key, value in node.items()}
    # The client also takes the blocks of its answers, whose types let any extra field pass.
    if isinstance(node.get("anyOf"), list):
        node["anyOf"] = [choice for choice in node["anyOf"] if choice.get("$ref") not in answers]
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        node.setdefault("additionalProperties", False)
    return node


def schema():
    """Returns the vendor's type of a request as a JSON Schema."""
    found = TypeAdapter(MessageCreateParamsStreaming).json_schema(schema_generator=Generator)
    open_types = {name for name, kind in found["$defs"].items() if kind.get("additionalProperties") is True}
    answers = {f"#/$defs/{name}" for name in open_types if name != "InputSchemaTyped"}
    return tightened(found, answers)


def blocks(message):
    """Returns the blocks of a message; a text alone is one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, dict)]


def order_errors(messages):
    """Yields where the sides do not alternate, or the wrong one begins or ends."""
    roles = [message.get("role") for message in messages]
    for place, role in enumerate(roles):
        if role != ("user", "assistant")[place % 2]:
            yield f"at messages/{place}: the role is {role!r}, but user and assistant alternate from the user on"
    if roles and roles[-1] != "user":
        yield "at the end: newer models refuse a last message of the assistant"


def pairing_errors(messages):
    """Yields what no type sees: every tool is answered once, first of all in the next message."""
    waiting = []
    used = set()
    for place, message in enumerate(messages):
        answered = []
        for number, block in enumerate(blocks(message)):
            if block.get("type") != "tool_result":
                continue
            if number != len(answered):
                yield f"at messages/{place}: a result behind something else"
            answered.append(block.get("tool_use_id"))
        if sorted(map(str, answered)) != sorted(map(str, waiting)):
            yield f"at messages/{place}: results for {answered}, but the calls before are {waiting}"
        waiting = [block.get("id") for block in blocks(message) if block.get("type") == "tool_use"]
        for name in waiting:
            if name in used:
                yield f"at messages/{place}: the call id {name!r} is used twice"
            if not ID.match(str(name)):
                yield f"at messages/{place}: the call id {name!r} has characters that the API refuses"
            used.add(name)
    if waiting:
        yield f"at the end: the calls {waiting} have no result"


def text_errors(body, messages):
    """Yields every text with nothing in it."""
    places = [("system", block) for block in body.get("system") or [] if isinstance(block, dict)]
    for place, message in enumerate(messages):
        for block in blocks(message):
            places.append((f"messages/{place}", block))
            if block.get("type") == "tool_result":
                places += [(f"messages/{place}", inner) for inner in blocks(block)]
    for place, block in places:
        if block.get("type") == "text" and not str(block.get("text")).strip():
            yield f"at {place}: a text with nothing in it"


def marks(node):
    """Counts the marks for the cache."""
    if isinstance(node, list):
        return sum(map(marks, node))
    if not isinstance(node, dict):
        return 0
    return ("cache_control" in node) + sum(map(marks, node.values()))


def request_errors(body, validator):
    """Yields every reason why the vendor would refuse one request body."""
    yield from schema_errors(body, validator, told=lambda error: best_match([error]))
    if marks(body) > MOST_MARKS:
        yield f"at the top: {marks(body)} marks for the cache, but the API takes {MOST_MARKS}"
    budget = (body.get("thinking") or {}).get("budget_tokens")
    if budget is not None and not LEAST_BUDGET <= budget < body.get("max_tokens", 0):
        yield f"at thinking: a budget of {budget}, which must be from {LEAST_BUDGET} to below max_tokens"
    messages = body.get("messages")
    if not messages:
        yield "at messages: at least one is needed"
    elif isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
        yield from order_errors(messages)
        yield from pairing_errors(messages)
        yield from text_errors(body, messages)


def prepare():
    """Returns what gives the errors of one body."""
    validator = Draft202012Validator(schema())
    return lambda body: request_errors(body, validator)


if __name__ == "__main__":
    sys.exit(check(prepare))
