"""Proves that validate_messages.py passes good request bodies and refuses broken ones.

Run with `tests/run counterparts`, or by hand with the Python that has requirements.txt installed.
"""

import unittest

from proof import Proof

MARK = {"type": "ephemeral"}

GOOD = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 32000,
    "stream": True,
    "thinking": {"type": "adaptive", "display": "summarized"},
    "output_config": {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    "tools": [
        {
            "name": "read_file",
            "description": "Reads a file.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
    ],
    "system": [{"type": "text", "text": "You are a test.", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "read it", "cache_control": MARK}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s=="},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}},
                {"type": "tool_use", "id": "b", "name": "read_file", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": [
                        {"type": "text", "text": "two"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    ],
                },
                {"type": "text", "text": "and?", "cache_control": MARK},
            ],
        },
    ],
}


def said(body):
    """Returns the blocks of the assistant."""
    return body["messages"][1]["content"]


def results(body):
    """Returns the blocks of the message with the results."""
    return body["messages"][2]["content"]


BROKEN = {
    "a misspelt field": lambda b: b.update(temprature=1),
    "a misspelt field of a block": lambda b: results(b)[2].update(txt="x"),
    "no model": lambda b: b.pop("model"),
    "no max_tokens": lambda b: b.pop("max_tokens"),
    "no stream": lambda b: b.update(stream=False),
    "messages empty": lambda b: b.update(messages=[]),
    "a message with an unknown role": lambda b: b["messages"][0].update(role="human"),
    "two messages of the user": lambda b: b["messages"].append({"role": "user", "content": "and?"}),
    "the assistant begins": lambda b: b["messages"].pop(0),
    "the assistant ends": lambda b: b["messages"].append({"role": "assistant", "content": "Done."}),
    "a blank text": lambda b: results(b)[2].update(text=" \n"),
    "a blank text in a result": lambda b: results(b)[1]["content"][0].update(text=""),
    "a blank system prompt": lambda b: b["system"][0].update(text=""),
    "input as text": lambda b: said(b)[3].update(input="{}"),
    "a call without id": lambda b: said(b)[3].pop("id"),
    "an id with a dot": lambda b: (said(b)[3].update(id="a.1"), results(b)[0].update(tool_use_id="a.1")),
    "an id used twice": lambda b: (said(b)[3].update(id="b"), results(b)[0].update(tool_use_id="b")),
    "a result that is missing": lambda b: results(b).pop(0),
    "a result twice": lambda b: results(b).insert(0, results(b)[0]),
    "a result without a call": lambda b: said(b).pop(),
    "a result behind a text": lambda b: results(b).insert(0, results(b).pop()),
    "all results missing": lambda b: b["messages"].pop(),
    "a thought with a mark": lambda b: said(b)[0].update(cache_control=MARK),
    "a thought without signature": lambda b: said(b)[0].pop("signature"),
    "five marks": lambda b: [block.update(cache_control=MARK) for block in results(b)],
    "a mark of an unknown kind": lambda b: results(b)[2].update(cache_control={"type": "forever"}),
    "an image of an unknown kind": lambda b: results(b)[1]["content"][1]["source"].update(media_type="image/bmp"),
    "an unknown effort": lambda b: b["output_config"].update(effort="huge"),
    "a budget that is too small": lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 10}),
    "a budget over max_tokens": lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 32000}),
    "a tool in the shape of another API": lambda b: b.update(
        tools=[{"type": "function", "function": {"name": "read_file", "parameters": {}}}]
    ),
}


class ValidateMessages(Proof, unittest.TestCase):
    """What a proof tests, and the good bodies of this API."""

    script = "validate_messages.py"
    good = GOOD
    broken = BROKEN

    def cache_options(self, cache):
        """The types come with the vendor's client: there is nothing to convert."""
        return []

    def test_good_bodies_pass(self):
        """A full body, a plain one and one from the double's journal have no error."""
        journal = self.changed(lambda b: b.update(_endpointType="messages"))
        budget = self.changed(lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 1024}))
        plain = {"model": "m", "max_tokens": 5, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        self.assertEqual(self.errors_of(GOOD, journal, budget, plain), [])


if __name__ == "__main__":
    unittest.main()
