import os
import subprocess
import sys

import pytest
import stored
from heapledger import command

TIMEOUT = 60


class Done:
    def __init__(self, status, output, errors):
        self.status, self.output, self.errors = status, output, errors


@pytest.fixture
def run(monkeypatch, capsysbinary):
    """run(*arguments): a command line in this process, in the folder of the stored captures."""
    monkeypatch.chdir(stored.GOLDEN)

    def run(*arguments):
        try:
            status = command.main([os.fspath(argument) for argument in arguments])
        except SystemExit as ending:
            status = ending.code
        output, errors = capsysbinary.readouterr()
        return Done(status, output.decode(), errors.decode())

    return run


@pytest.fixture
def fine(run):
    """The same for what must succeed: what it writes."""

    def fine(*arguments):
        done = run(*arguments)
        assert (done.status, done.errors) == (0, ""), done.errors
        return done.output

    return fine


@pytest.fixture
def process():
    """process(*arguments): the same as a process of its own."""

    def process(*arguments, **options):
        line = [sys.executable, "-I", "-m", "heapledger", *arguments]
        return subprocess.run(line, cwd=stored.GOLDEN, timeout=TIMEOUT, check=False, **options)

    return process


@pytest.fixture
def bad_files(tmp_path):
    """A folder of files that are not what they should be."""
    whole = (stored.GOLDEN / "old.hlsnap").read_bytes()
    contents = {
        "cut": whole[:-30],
        "damaged": whole[:700] + bytes([whole[700] ^ 1]) + whole[701:],
        "other": b"hello",
        "empty": b"",
        "pickle": b"\x80\x03cos\nsystem\n.",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path
