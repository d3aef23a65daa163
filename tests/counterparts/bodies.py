"""What the validators of request bodies have in common: their input, their output, and the schema's own errors."""

import json
import sys

# Keys that the recording double adds to the bodies in its journal; no client sends them.
JOURNAL_KEYS = {"_endpointType", "_context"}


def schema_errors(body, validator, told=lambda error: error):
    """Yields every place where a body breaks a schema; `told` may choose a better error for it."""
    for error in sorted(validator.iter_errors(body), key=lambda found: list(map(str, found.path))):
        error = told(error)
        place = "/".join(map(str, error.absolute_path)) or "the top"
        yield f"at {place}: {error.message[:400]}"


def check(prepare):
    """Checks the bodies on stdin and returns the exit code; `prepare` makes what gives the errors of one body."""
    try:
        bodies = json.load(sys.stdin)
    except json.JSONDecodeError as error:
        print(f"stdin is not JSON: {error}", file=sys.stderr)
        return 2
    if not isinstance(bodies, list):
        print("stdin must be a JSON array of request bodies", file=sys.stderr)
        return 2
    errors_of = prepare()
    errors = [f"request {number}: {error}" for number, body in enumerate(bodies) for error in errors_in(body, errors_of)]
    print(json.dumps({"checked": len(bodies), "errors": errors}, ensure_ascii=False))
    return 1 if errors else 0


def errors_in(body, errors_of):
    """Yields the errors of one body, without what the double has added to it."""
    if not isinstance(body, dict):
        yield "is not a JSON object"
        return
    yield from errors_of({key: value for key, value in body.items() if key not in JOURNAL_KEYS})
