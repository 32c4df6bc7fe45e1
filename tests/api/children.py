"""Run a script in a fresh interpreter."""

import os
import subprocess
import sys
import tempfile
import textwrap

TIMEOUT = 60


def run(source, *arguments, options=(), expect=0, environment=None, timeout=TIMEOUT):
    """The child's stdout. A crash, a hang or another exit status fails with what the child said."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(source).lstrip("\n"))
        command = [sys.executable, "-X", "faulthandler", *options, path, *map(str, arguments)]
        variables = {**os.environ, **(environment or {})}
        child = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=timeout, check=False
        )
    assert child.returncode == expect, f"exit status {child.returncode}\n{child.stdout[-2000:]}\n{child.stderr[-4000:]}"
    assert "Fatal Python error" not in child.stderr, child.stderr[-4000:]
    return child.stdout


INTERPRETERS = """
    import sys, textwrap, threading
    import heapledger
    try:
        import _interpreters
    except ImportError:
        import _xxsubinterpreters as _interpreters

    def create():
        return _interpreters.create()

    def execute(interpreter, source):
        source = textwrap.dedent(source)
        if hasattr(_interpreters, "exec"):
            problem = _interpreters.exec(interpreter, source)
            assert problem is None, problem
        else:
            _interpreters.run_string(interpreter, source)
"""


def with_interpreters(source):
    prepare = "\n".join(line[4:] for line in INTERPRETERS.splitlines())
    body = "\n".join(line[8:] for line in source.splitlines())
    return run(prepare + "\n" + body)
