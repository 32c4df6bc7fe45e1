"""Check what neither the compiler nor the linters see: includes, the lists in meson.build, the pins, the tests that
docs/reliability.md names, and long lines.

A file in a folder of src/ includes headers of its own folder and of the folders that `MAY_INCLUDE` lists for it.
Prints each offence; exits 1 when there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAY_INCLUDE = {  # the folders of src/ whose headers each folder may include, besides its own
    "core": (),
    "elf": (),
    "cpython": ("core", "elf"),
    "run": ("core", "cpython"),
    "binding": ("core", "cpython", "run"),
    "preload": (),
}
WITH_PYTHON = ("cpython", "run", "binding")
WITHOUT_LIST = ("preload",)  # one file, which the meson.build of the root names
MOST_LINES = 500
MOST_COLUMNS = 120
# What people read and write, but Python, which ruff checks.
WRITTEN = (
    "Makefile .ci/run tools/* .github/workflows/*.yml meson.build src/*/meson.build tests/core/meson.build "
    "*.md docs/**/*.md src/*/*.[ch] tests/*/*.[ch] bench/*.[ch] python/heapledger/include/*.h "
    "python/heapledger/report/page/* tests/*/*.js"
).split()
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path):
    return path.relative_to(ROOT / "src").parts[0]


def knows_python(name):
    return name in ("Python.h", "frameobject.h", "structmember.h") or name.startswith(("internal/", "pycore_"))


def includes(path):
    """Offences of one file against the order of folders."""
    folder = folder_of(path)
    for bracket, name in INCLUDE.findall(path.read_text()):
        if bracket == "<" or knows_python(name):
            if knows_python(name) and folder not in WITH_PYTHON:
                yield f"{folder} must not know Python, but includes {name}"
            continue
        target = (path.parent / name).resolve()
        if not target.is_file():
            yield f"includes {name}, which does not exist"
        elif folder_of(target) not in (folder, *MAY_INCLUDE[folder]):
            yield f"{folder} must not include {name}"


def unlisted(folder, listing, pattern):
    """C files of a folder that its meson.build does not build, and the other way round."""
    listed = set(re.findall(pattern, listing.read_text()))
    there = {path.name for path in folder.glob("*.c")}
    for name in sorted(there ^ listed):
        yield f"{name} is {'not listed' if name in there else 'listed, but not there'}"


def missing_tests(document):
    """Tests that a document names and that are not there."""
    there = set()
    for path in (ROOT / "tests").rglob("*.[ch]"):
        there |= set(re.findall(r"^static void (\w+)\(void\)", path.read_text(), re.MULTILINE))
    for path in (ROOT / "tests").rglob("*.py"):
        there |= {path.stem, *re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)}
    text = document.read_text()
    names = {*re.findall(r"`(test_\w+)`", text), *re.findall(r"^- `(\w+)`:", text, re.MULTILINE)}
    for name in sorted(names - there):
        yield f"names the test {name}, which is not there"


def long_lines(path):
    """Lines that are too long and could be broken. In Markdown, tables and code may be of any length."""
    is_code = False
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if path.suffix == ".md":
            is_code ^= line.lstrip().startswith("```")
            if is_code or line.startswith(("|", "    ")):
                continue
        if len(line) > MOST_COLUMNS and " " in line[:MOST_COLUMNS].strip():
            yield f"line {number} has {len(line)} columns; {MOST_COLUMNS} are the most"


def offences():
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for offence in includes(path):
            yield path, offence
    for path in sorted(path for top in ("src", "tests", "bench") for path in (ROOT / top).rglob("*.[ch]")):
        lines = path.read_text().count("\n")
        if lines > MOST_LINES:
            yield path, f"{lines} lines; {MOST_LINES} are the most that one file may have"
    for path in sorted(path for pattern in WRITTEN for path in ROOT.glob(pattern) if path.is_file()):
        for offence in long_lines(path):
            yield path, offence
    for name in sorted(MAY_INCLUDE.keys() - WITHOUT_LIST):
        folder = ROOT / "src" / name
        for offence in unlisted(folder, folder / "meson.build", r"'(\w+\.c)'"):
            yield folder / "meson.build", offence
    listing = ROOT / "tests" / "core" / "meson.build"
    named = re.search(r"core_tests = \[(.*?)\]", listing.read_text(), re.DOTALL).group(1)
    tests = {f"test_{name}" for name in re.findall(r"'(\w+)'", named)}
    there = {path.stem for path in listing.parent.glob("test_*.c")}
    for name in sorted(tests ^ there):
        yield listing, f"{name} is {'not listed' if name in there else 'listed, but not there'}"
    pins = set((ROOT / "tools" / "requirements.txt").read_text().split("\n"))
    build = re.search(r"^requires = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    for pin in sorted(set(re.findall(r'"([^"]+)"', build)) - pins):
        yield ROOT / "pyproject.toml", f"{pin} is not in tools/requirements.txt"
    document = ROOT / "docs" / "reliability.md"
    for offence in missing_tests(document):
        yield document, offence


def main():
    found = list(offences())
    for path, offence in found:
        print(f"{path.relative_to(ROOT)}: {offence}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
