"""Proves that validate_responses.py passes good request bodies and refuses broken ones.

Run with `tests/run counterparts`, or by hand with the Python that has requirements.txt installed.
"""

import unittest

from proof import Proof

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}

TOOL = {
    "type": "function",
    "name": "read_file",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "strict": False,
}

GOOD = {
    "model": "gpt-5.4",
    "instructions": "You are a test.",
    "tools": [TOOL],
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": {"type": "object"}}},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "stream": True,
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "read it"}, IMAGE]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I read."}]},
        {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": '{"path":"x"}'},
        {"type": "function_call", "call_id": "b", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "two"}, IMAGE]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ],
}


def item(place, **fields):
    """Returns a change that sets fields of an input item."""
    return lambda body: body["input"][place].update(fields)


BROKEN = {
    "a misspelt field": lambda b: b.update(temprature=1),
    "no model": lambda b: b.pop("model"),
    "messages of another API": lambda b: b.update(messages=b.pop("input")),
    "an input that is no list": lambda b: b.update(input={}),
    "an item of an unknown type": item(0, type="note"),
    "an unknown role": item(0, role="human"),
    "a text of the wrong side": lambda b: b["input"][2].update(content=[{"type": "input_txt", "text": "x"}]),
    "an image without its detail": lambda b: b["input"][0]["content"][1].pop("detail"),
    "an output without call_id": lambda b: b["input"][5].pop("call_id"),
    "an output that is an object": item(5, output={"text": "one"}),
    "arguments as object": item(3, arguments={"path": "x"}),
    "arguments that are no JSON": item(3, arguments="{"),
    "arguments that are no object": item(3, arguments="[]"),
    "a call without name": lambda b: b["input"][3].pop("name"),
    "a thought without summary": lambda b: b["input"][1].pop("summary"),
    "a thought with an unknown status": item(1, status="thinking"),
    "a thought that only has an id": lambda b: b["input"][1].pop("encrypted_content"),
    "a tool in the shape of another API": lambda b: b.update(tools=[{"type": "function", "function": TOOL}]),
    "a tool without strict": lambda b: b["tools"][0].pop("strict"),
    "an unknown reasoning effort": lambda b: b["reasoning"].update(effort="huge"),
    "an unknown include": lambda b: b.update(include=["everything"]),
    "a schema without name": lambda b: b["text"]["format"].pop("name"),
    "an answer that is stored": lambda b: b.update(store=True),
    "an answer before that is not stored": lambda b: b.update(previous_response_id="resp_1"),
    "a missing output": lambda b: b["input"].pop(6),
    "an output twice": lambda b: b["input"].insert(6, b["input"][5]),
    "an output without a call": lambda b: b["input"].append(dict(b["input"][5], call_id="z")),
    "a call id used twice": item(3, call_id="b"),
    "an output missing at the end": lambda b: b.update(input=b["input"][:6]),
}


class ValidateResponses(Proof, unittest.TestCase):
    """What a proof tests, and the good bodies of this API."""

    script = "validate_responses.py"
    good = GOOD
    broken = BROKEN

    def test_good_bodies_pass(self):
        """A plain body and one from the double's journal have no error."""
        journal = self.changed(lambda b: b.update(_endpointType="responses"))
        self.assertEqual(self.errors_of(GOOD, journal), [])


if __name__ == "__main__":
    unittest.main()
