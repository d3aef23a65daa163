"""Proves that validate_chat.py passes good request bodies and refuses broken ones.

Run with `tests/run counterparts`, or by hand with the Python that has requirements.txt installed.
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).with_name("validate_chat.py")

TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}

GOOD = {
    "model": "gpt-5.4",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [TOOL],
    "messages": [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": [{"type": "text", "text": "read it"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"x"}'}},
                {"id": "b", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "assistant", "content": "Done."},
    ],
}


def run(text):
    """Runs the script on a text and returns its exit code, standard output and standard error."""
    command = [sys.executable, str(SCRIPT)]
    if cache := os.environ.get("OPENVAALA_SPEC_CACHE"):
        command += ["--cache", cache]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def errors_of(*bodies):
    """Returns the errors that the script finds in request bodies."""
    code, out, err = run(json.dumps(bodies))
    if code == 2 or not out:
        raise AssertionError(f"exit code {code}: {err}")
    answer = json.loads(out)
    assert answer["checked"] == len(bodies)
    assert code == (1 if answer["errors"] else 0)
    return answer["errors"]


def changed(change):
    """Returns a copy of the good body with one change made to it."""
    body = copy.deepcopy(GOOD)
    change(body)
    return body


def call(body):
    """Returns the first tool call of a body."""
    return body["messages"][2]["tool_calls"][0]


BROKEN = {
    "a misspelt field": lambda b: b.update(temprature=1),
    "no model": lambda b: b.pop("model"),
    "messages empty": lambda b: b.update(messages=[]),
    "a result without tool_call_id": lambda b: b["messages"][3].pop("tool_call_id"),
    "arguments as object": lambda b: call(b)["function"].update(arguments={"path": "x"}),
    "arguments that are no JSON": lambda b: call(b)["function"].update(arguments="{"),
    "arguments that are no object": lambda b: call(b)["function"].update(arguments="[]"),
    "a call without id": lambda b: call(b).pop("id"),
    "an unknown role": lambda b: b["messages"][1].update(role="human"),
    "a tool in the shape of another API": lambda b: b.update(
        tools=[{"type": "function", "name": "read_file", "parameters": {}}]
    ),
    "an unknown reasoning effort": lambda b: b.update(reasoning_effort="huge"),
    "a missing result": lambda b: b["messages"].pop(4),
    "a result twice": lambda b: b["messages"].insert(4, b["messages"][3]),
    "a result without a call": lambda b: b["messages"].append({"role": "tool", "tool_call_id": "z", "content": "x"}),
    "a call id used twice": lambda b: call(b).update(id="b"),
    "a result missing at the end": lambda b: b.update(messages=b["messages"][:4]),
}


class ValidateChat(unittest.TestCase):
    """One test for good bodies, one for each way to break them, one for wrong input."""

    def test_good_bodies_pass(self):
        """A plain body and one from the double's journal have no error."""
        journal = changed(lambda b: b.update(_endpointType="chat"))
        self.assertEqual(errors_of(GOOD, journal), [])

    def test_each_broken_body_is_refused(self):
        """Every change in BROKEN gives at least one error, and names the request."""
        for name, change in BROKEN.items():
            with self.subTest(name):
                errors = errors_of(GOOD, changed(change))
                self.assertTrue(errors)
                self.assertTrue(all(error.startswith("request 1: ") for error in errors), errors)

    def test_wrong_input_is_exit_code_two(self):
        """Input that is no JSON array is told apart from invalid requests."""
        for text in ("", "{", "{}"):
            with self.subTest(text):
                self.assertEqual(run(text)[0], 2)


if __name__ == "__main__":
    unittest.main()
