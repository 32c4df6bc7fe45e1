"""The commands' outputs for stored captures, byte by byte, and that nothing in them is anything but text."""

import json

import pytest
import stored


@pytest.mark.parametrize("name", stored.COMMANDS)
def test_output(run, name):
    done = run(*stored.COMMANDS[name])
    # Not as text: exported files may have any ends of lines in them.
    assert done.output.encode() == (stored.GOLDEN / f"{name}.txt").read_bytes()
    # The stored captures are of one process.
    assert done.status == 0 and done.errors.count("\n") == name.endswith("-merged")


def test_there_is_one_file_for_each():
    assert sorted(path.stem for path in stored.GOLDEN.glob("*.txt")) == sorted(stored.COMMANDS)


# A CSV file is for programs, which want names as they are.
@pytest.mark.parametrize("name", [name for name in stored.COMMANDS if name != "export-csv"])
def test_nothing_that_a_terminal_would_obey(name):
    text = (stored.GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("name", [name for name in stored.COMMANDS if name.endswith("json") or "speedscope" in name])
def test_json(name):
    assert isinstance(json.loads((stored.GOLDEN / f"{name}.txt").read_bytes()), dict)
