"""What the runs of one test file of the interpreter's suite have given, kept so that a stopped comparison goes on.

A Results is a file's untraced or traced runs, in a JSON file in build/regrtest-VERSION. A run is {test: outcome}, with
how the process ended under the file's own name. Runs count as long as their key is the same: what they depend on, which
is the interpreter and the cases left out, and for traced ones heapledger as installed. Results of one file are used by
one thread at a time; a JSON file is replaced as a whole, so a killed run leaves the old one or the new one.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import sys


def untraced_key(cases_left_out):
    return hashlib.sha256(repr((sys.version, sys.executable, cases_left_out)).encode()).hexdigest()


def traced_key(cases_left_out, frames):
    """Heapledger's own files as installed are part of it, so no run of other code is taken for one of this."""
    found = hashlib.sha256(repr((untraced_key(cases_left_out), frames)).encode())
    package = pathlib.Path(importlib.util.find_spec("heapledger").origin).parent
    for path in sorted([*package.rglob("*.so"), *package.rglob("*.py"), *package.parent.glob("_heapledger*.py")]):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


class Results:
    def __init__(self, path, key):
        self.path, self.key, self.runs, self.seconds = path, key, [], None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        self.seconds = stored["seconds"]  # a hint only: also of runs that do not count any more
        if stored["key"] == key:
            self.runs = stored["runs"]

    def add(self, run, seconds):
        self.runs.append(run)
        self.seconds = seconds
        text = json.dumps({"key": self.key, "seconds": seconds, "runs": self.runs}, indent=0)
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, self.path)

    def forget(self):
        self.runs = []


def known_seconds(build, file):
    """The most that a file is known to have taken, by any version whose results are in build/; None if it never ran."""
    found = []
    for path in build.glob(f"regrtest-*/{file}-*traced.json"):
        found.append(json.loads(path.read_text(encoding="utf-8"))["seconds"])
    return max(found, default=None)
