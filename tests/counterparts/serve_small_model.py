#!/usr/bin/env python3
"""Serves the small model on this machine, in the dialects of llama.cpp's own server.

Usage: serve_small_model.py MODEL PORT

Listens on 127.0.0.1 until it is killed. GET /health answers 200 once the model is loaded.

The model calls tools in a JSON code block whatever the template that came with it says, and the server learns from the
template what a call looks like. So the template is changed to say what the model does.
"""

import pathlib
import struct
import sys
import time

import xllamacpp

CONTEXT_TOKENS = 8192
# Threads wait for each other, which costs more on a busy machine than the second one brings.
THREADS = 1

CHANGES = (
    (
        r"within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, "
        r"\"arguments\": <args-json-object>}\n</tool_call>",
        r"within a ```json code block:\n```json\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n```",
    ),
    (r"""'\n<tool_call>\n{"name": "'""", r"""'\n```json\n{"name": "'"""),
    (r"'}\n</tool_call>'", r"'}\n```'"),
    (r"'\n<tool_response>\n'", r"'\nThe tool returned:\n'"),
    # Without this it calls the same tool for ever.
    (r"'\n</tool_response>'", r"'\nNow answer my request in plain words. Do not call a tool again.'"),
)


def own_template(model):
    """Returns the chat template that a GGUF file carries."""
    key = b"tokenizer.chat_template"
    with open(model, "rb") as file:
        head = file.read(16 << 20)
    place = head.find(key)
    if place < 0:
        sys.exit(f"{model}: there is no chat template in it")
    # A string: its type (4 bytes), its length (8 bytes), its text.
    place += len(key) + 4
    (length,) = struct.unpack_from("<Q", head, place)
    return head[place + 8 : place + 8 + length].decode()


def changed_template(text):
    """Returns the template with the model's own way of calling tools."""
    # The template has these braces twice, which would teach the model to do so, too.
    shape = r"{\"name\": <function-name>, \"arguments\": <args-json-object>}"
    text = text.replace("{" + shape + "}", shape)
    for old, new in CHANGES:
        if old not in text:
            sys.exit(f"the template has no {old!r}: it is not that of this model")
        text = text.replace(old, new)
    return text


def main():
    """Serves until the process is killed."""
    model, port = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = THREADS
    params.use_jinja = True
    params.warmup = False
    params.chat_template = changed_template(own_template(pathlib.Path(model)))
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
