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
# Blocks that are run, in their order: code, and commands with what they say. A block with a name is a file.
BLOCK = re.compile(r"^```(python|console)( file=\S+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
# Sizes of objects differ between versions of Python, and what is shown is one version's.
TOLERANCE = 0.25


def same(shown, said):
    """Whether two texts are the same but for the size of numbers; a line of three dots stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else f"({NUMBER.pattern})".join(map(re.escape, NUMBER.split(line)))
        for line in shown.splitlines(keepends=True)
    )
    match = re.fullmatch(pattern, said)
    values = [float(number.replace(",", "")) for number in NUMBER.findall(shown)]
    found = [float(number.replace(",", "")) for number in match.groups()] if match else []
    return bool(match) and all(
        abs(one - other) <= TOLERANCE * abs(one) for one, other in zip(values, found, strict=True)
    )


def run_console(text, folder):
    """Each line that begins with $ says what follows it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        # Plugins that the environment of our tests has, and the reader's has not, stay away.
        environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "PYTEST_ADDOPTS": "-p no:asyncio -p no:memray"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        said = subprocess.run(command, shell=True, cwd=folder, env=environment, timeout=60, **streams).stdout
        said = "".join(line.rstrip() + "\n" for line in said.replace(f"{folder}/", "").splitlines())
        shown, said = (re.sub(r"in \d+\.\d+s$", "in a moment", text, flags=re.MULTILINE) for text in (shown, said))
        assert same(shown, said), f"{command} says\n{said}"


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.stem)
def test_page(page, tmp_path):
    """What a reader does who follows the page from top to bottom, in a folder with the examples."""
    shutil.copytree(DOCUMENTS / "examples", tmp_path, dirs_exist_ok=True)
    for language, name, text in BLOCK.findall(page.read_text()):
        if name:
            (tmp_path / name.partition("=")[2]).write_text(text)
        elif language == "console":
            run_console(text, tmp_path)
        else:
            (tmp_path / "block.py").write_text(text)
            python("block.py", folder=tmp_path)


def test_examples_are_shown_as_they_are():
    shown = {name: text for page in PAGES for _, name, text in BLOCK.findall(page.read_text()) if name}
    for path in (DOCUMENTS / "examples").glob("*.py"):
        assert shown.get(f" file={path.name}", path.read_text()) == path.read_text(), path.name


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


def test_contributors_find_what_they_are_told():
    """CONTRIBUTING names files, folders and C names that exist, and every folder with source or tests."""
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:\.github|bench|docs|python|src|tests|tools)/[\w./-]*)`", text))
    assert len(named) > 50
    assert [path for path in sorted(named) if not (CHECKOUT / path).exists()] == []
    folders = {f"{path.relative_to(CHECKOUT)}/" for top in ("python", "src", "tests")
               for path in (CHECKOUT / top).iterdir() if path.is_dir() and path.name != "__pycache__"}  # fmt: skip
    assert folders - named == set()
    sources = "".join(path.read_text() for path in (CHECKOUT / "src").rglob("*.[ch]"))
    names = set(re.findall(r"`((?:hl|HL)_\w+)`", text)) - {"hl_module_verb", "hl_py_module_verb"}
    assert len(names) >= 8
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", sources)] == []


def test_the_comparison_invents_no_figure():
    results = (CHECKOUT / "bench" / "RESULTS.md").read_text()
    beside = (DOCUMENTS / "benchmarks.md").read_text()
    figures = (DOCUMENTS / "comparison.md").read_text().partition("## Figures")[2]
    measured = re.findall(r"\d[\d,]*\.\d+", re.sub(r"\b3\.1[1-5]\b", "", figures))  # versions are none
    assert len(measured) >= 12
    means = re.findall(r"^\| (3\.\d+), (\d+) frames? \| x(\S+) \| x(\S+) ", figures, re.MULTILINE)
    assert len(means) >= 4
    for version, frames, *shown in means:
        part = results.partition(f"<!-- part {version} workloads -->")[2]
        table = re.search(r"^\| workload .*?^\| \*\*geometric mean[^\n]*", part, re.MULTILINE | re.DOTALL)
        rows = [[cell.strip(" *") for cell in row.split("|")] for row in table.group().splitlines()]
        column = {heading: mean for heading, mean in zip(rows[0], rows[-1], strict=True)}
        unit = "frame" if frames == "1" else "frames"
        assert shown == [column[f"{engine}, {frames} {unit}"] for engine in ("heapledger", "stdlib")], (version, frames)
    for figure in measured:
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d.])", results + beside), figure


def test_the_comparison_shows_the_peers_as_measured():
    """Its table of all tools has the geometric means of docs/benchmarks.md, and leaves none of them out."""
    part = re.search(r"<!-- part 3.12 peers -->.*?<!-- end -->", (DOCUMENTS / "benchmarks.md").read_text(), re.DOTALL)
    measured = {}
    for table in ("Processor time", "Processor time without start and end", "Peak RSS"):
        text = part.group().partition(f"{table}, against untraced:")[2].strip().partition("\n\n")[0]
        for title, mean in re.findall(r"^\| ([^|]*?) \|.*\| \*\*(\S+)\*\* \|$", text, re.MULTILINE):
            measured.setdefault(title, []).append(mean)
    assert len(measured) == 8
    figures = (DOCUMENTS / "comparison.md").read_text().partition("## Figures")[2]
    rows = re.findall(r"^\| (\S[^|]*?) \| x(\S+) \| x(\S+) \| x(\S+) \|$", figures, re.MULTILINE)
    assert {title.replace("`", ""): means for title, *means in rows} == measured


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
