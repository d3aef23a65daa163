"""Proves that validate_chat.py passes good request bodies and refuses broken ones.

Run with `tests/run counterparts`, or by hand with the Python that has requirements.txt installed.
"""

import unittest

from proof import Proof

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


class ValidateChat(Proof, unittest.TestCase):
    """What a proof tests, and the good bodies of this API."""

    script = "validate_chat.py"
    good = GOOD
    broken = BROKEN

    def test_good_bodies_pass(self):
        """A plain body and one from the double's journal have no error."""
        journal = self.changed(lambda b: b.update(_endpointType="chat"))
        self.assertEqual(self.errors_of(GOOD, journal), [])


if __name__ == "__main__":
    unittest.main()
