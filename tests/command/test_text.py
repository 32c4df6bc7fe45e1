"""How sizes are written: the same in the commands and on the page; tests/core/test_size_text.c has it for C."""

import json
import pathlib
import subprocess

import heapledger
import pytest
from heapledger.command import _text
from outside import need

TABLE = pathlib.Path(__file__).resolve().parent.parent / "sizes.txt"
PAGE = pathlib.Path(heapledger.__file__).parent / "report" / "page"
SIZES = [(int(number), text) for number, text in (line.split("\t") for line in TABLE.read_text().splitlines())]


@pytest.mark.parametrize(("number", "text"), SIZES)
def test_sizes_of_the_commands(number, text):
    assert _text.size(number) == text
    assert _text.size(number, sign=True) == (f"+{text}" if number else text)
    assert _text.size(-number) == (f"-{text}" if number else text)


def test_sizes_of_the_page():
    """Its numbers are exact up to 2**53, and it has a true minus sign."""
    sizes = [(number, text) for number, text in SIZES if number <= 2**53]
    numbers = [number for number, _ in sizes] + [-number for number, _ in sizes[1:]]
    script = (PAGE / "text.js").read_text() + f"\nconsole.log(JSON.stringify({numbers}.map(bytesText)));"
    done = subprocess.run([need("node"), "-"], input=script, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [text for _, text in sizes] + [f"\N{MINUS SIGN}{text}" for _, text in sizes[1:]]
