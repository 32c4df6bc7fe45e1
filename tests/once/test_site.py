"""The documentation is true: its code runs, its commands say what it shows, its lists are complete, and it builds."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import heapledger
import pytest
from documents import DOCUMENTS, python

CHECKOUT = DOCUMENTS.parent
PAGES = [CHECKOUT / "README.md", *sorted(DOCUMENTS.rglob("*.md"))]
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```python file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
# Sizes of objects differ between versions of Python, and what is shown is one version's.
TOLERANCE = 0.25


def blocks(pattern):
    return [
        pytest.param(block, id=f"{page.relative_to(CHECKOUT).as_posix()}-{number}")
        for page in PAGES
        for number, block in enumerate(pattern.findall(page.read_text()), 1)
    ]


@pytest.fixture
def folder(tmp_path):
    """Where a reader is, with the examples."""
    shutil.copytree(DOCUMENTS / "examples", tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("code", blocks(CODE))
def test_code(code, folder):
    (folder / "block.py").write_text(code)
    python("block.py", folder=folder)


def same(shown, said):
    """Whether two texts are the same but for the size of numbers."""
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (shown, said)]
    if NUMBER.sub("#", shown) != NUMBER.sub("#", said):
        return False
    return all(abs(one - other) <= TOLERANCE * abs(one) for one, other in zip(*numbers, strict=True))


@pytest.mark.parametrize("text", blocks(CONSOLE))
def test_console(text, folder):
    """Each line that begins with $ says what follows it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        said = subprocess.run(command, shell=True, cwd=folder, env=environment, timeout=60, **streams).stdout
        lines = [line.rstrip() for line in said.replace(f"{folder}/", "").splitlines()]
        assert same(shown, "".join(line + "\n" for line in lines)), f"{command} says\n" + "\n".join(lines)


def test_examples_are_shown_as_they_are():
    shown = {name: code for page in PAGES for name, code in FILE.findall(page.read_text())}
    for path in (DOCUMENTS / "examples").glob("*.py"):
        assert shown.get(path.name, path.read_text()) == path.read_text(), path.name


def test_the_reference_has_every_name():
    """And nothing that is not there."""
    text = (DOCUMENTS / "reference.md").read_text()
    named = re.findall(r"^\| `(\w+)", text, re.MULTILINE)
    assert sorted(named) == sorted(heapledger.__all__)
    for name in named:
        one = getattr(heapledger, name)
        if isinstance(one, type) and issubclass(one, (heapledger.Snapshot, heapledger.Capture)):
            row = re.search(rf"^\| `{name}`.*", text, re.MULTILINE).group()
            public = {attribute for attribute in dir(one) if not attribute.startswith("_")}
            assert public <= set(re.findall(r"`(\w+)", row)), name


def test_the_comparison_invents_no_figure():
    results = (CHECKOUT / "bench" / "RESULTS.md").read_text()
    figures = (DOCUMENTS / "comparison.md").read_text().partition("## Figures")[2]
    measured = re.findall(r"\d[\d,]*\.\d+", re.sub(r"\b3\.1[1-5]\b", "", figures))  # versions are none
    assert len(measured) >= 12
    for figure in measured:
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d.])", results), figure


def test_it_builds():
    """Strictly: a link to nowhere, or a page that is in no list, is an error."""
    command = [sys.executable, CHECKOUT / "tools" / "docs.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    site = CHECKOUT / "build" / "site"
    pages = {pathlib.Path(path).relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    expected = {page.relative_to(DOCUMENTS).as_posix() for page in PAGES if page.is_relative_to(DOCUMENTS)}
    assert expected | {"index.md", "options.md", "contributing.md", "changelog.md", "results.md"} <= pages
    assert "heapledger status" in (site / "options.html").read_text()
