"""Programs under `heapledger run`, each in a folder of its own, and without it."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import heapledger

TIMEOUT = 60
PRELOAD = str(pathlib.Path(heapledger.__file__).resolve().with_name("_preload.so"))
# What the tests' own environment must not bring along.
TRACERS = ("HEAPLEDGER", "HEAPLEDGER_RUN", "PYTHONTRACEMALLOC", "LD_PRELOAD")


class Folder:
    """A folder with scripts in it, where programs run and files are written."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def script(self, source, name="script.py"):
        (self.path / name).write_text(textwrap.dedent(source), encoding="utf-8")
        return name

    def start(self, command, **more):
        environment = {name: value for name, value in os.environ.items() if name not in TRACERS}
        environment.update(more.pop("environment", {}))
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def finish(self, child, stdin=""):
        try:
            out, err = child.communicate(stdin, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        return Done(child.returncode, out, err)

    def plain(self, *program, flags=(), stdin="", **more):
        """Run the program as anybody would."""
        return self.finish(self.start([sys.executable, *flags, *program], **more), stdin)

    def start_traced(self, *program, flags=(), options=(), **more):
        return self.start([sys.executable, *flags, "-m", "heapledger", "run", *options, *program], **more)

    def traced(self, *program, stdin="", **more):
        """Run it under `heapledger run`."""
        return self.finish(self.start_traced(*program, **more), stdin)

    def files(self):
        return sorted(self.path.glob("*.hlsnap"))

    def captures(self):
        """{pid: capture} of all files."""
        loaded = [heapledger.Capture.load(path) for path in self.files()]
        captures = {capture.metadata["pid"]: capture for capture in loaded}
        assert len(captures) == len(loaded)
        return captures

    def clear(self):
        for path in self.files():
            path.unlink()

    def leftovers(self):
        """Files that nobody asked for."""
        return [path for path in self.path.iterdir() if path.suffix == ".tmp"]


class Done:
    def __init__(self, status, out, err):
        self.status = status
        self.out = re.sub(r" at 0x[0-9a-f]+", "", out)
        self.err = re.sub(r" at 0x[0-9a-f]+", "", err)

    def __eq__(self, other):
        return (self.status, self.out, self.err) == (other.status, other.out, other.err)

    def __repr__(self):
        return f"exit status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def size_at(snapshot, filename, lineno=None):
    """(bytes, blocks) of a snapshot whose newest frame is in this file, at this line if one is given."""
    statistics = [
        statistic
        for statistic in snapshot.statistics("lineno")
        if pathlib.Path(statistic.traceback[0].filename).name == filename
        and lineno in (None, statistic.traceback[0].lineno)
    ]
    return sum(statistic.size for statistic in statistics), sum(statistic.count for statistic in statistics)
