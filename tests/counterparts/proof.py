"""The proof that a validator passes good request bodies and refuses broken ones."""

import copy
import json
import os
import pathlib
import subprocess
import sys


class Proof:
    """Tests of one validator; mixed into a TestCase that names the script, a good body and ways to break it."""

    script = ""
    good = {}
    broken = {}

    def run_on(self, text):
        """Runs the script on a text and returns its exit code, standard output and standard error."""
        command = [sys.executable, str(pathlib.Path(__file__).with_name(self.script))]
        if cache := os.environ.get("OPENVAALA_SPEC_CACHE"):
            command += self.cache_options(cache)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def cache_options(self, cache):
        """Returns the options that name the folder for converted API descriptions."""
        return ["--cache", cache]

    def errors_of(self, *bodies):
        """Returns the errors that the script finds in request bodies."""
        code, out, err = self.run_on(json.dumps(bodies))
        if code == 2 or not out:
            raise AssertionError(f"exit code {code}: {err}")
        answer = json.loads(out)
        self.assertEqual(answer["checked"], len(bodies))
        self.assertEqual(code, 1 if answer["errors"] else 0)
        return answer["errors"]

    def changed(self, change):
        """Returns a copy of the good body with one change made to it."""
        body = copy.deepcopy(self.good)
        change(body)
        return body

    def test_each_broken_body_is_refused(self):
        """Every way to break a body gives at least one error, which names the request; the good one has none."""
        names = list(self.broken)
        errors = self.errors_of(self.good, *(self.changed(self.broken[name]) for name in names))
        self.assertFalse([error for error in errors if error.startswith("request 0: ")])
        for number, name in enumerate(names, 1):
            with self.subTest(name):
                self.assertTrue([error for error in errors if error.startswith(f"request {number}: ")])

    def test_wrong_input_is_exit_code_two(self):
        """Input that is no JSON array is told apart from invalid requests."""
        for text in ("", "{", "{}"):
            with self.subTest(text):
                self.assertEqual(self.run_on(text)[0], 2)
