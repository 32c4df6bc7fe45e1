"""bench/RESULTS.md: one section per interpreter, each made of parts that a later run replaces.

The whole file is generated: parts are found again by their marks, `<!-- part 3.11 workloads -->` to `<!-- end -->`,
and what a run did not measure stays as it was.
"""

import pathlib
import platform
import re
import sys

PREFACE = """# Benchmark results

Written by `make bench` (`python bench/run.py`; one part alone: `--only PART`), `make bench-snapshots` and
`make bench-commands`, which measures the report's page too; do not edit.
Every figure comes from fresh processes, modes interleaved. Ratios are slowdowns against untraced: 1.00 is free.

The workloads (bench/workloads.py) allocate heavily on purpose and run below 30 frames of recursion, so that 25 frames
really are 25. **Floor**: hooks of the public allocator API that only pass through. **Engine**: the rest, which is
heapledger's own work, and what the interpreter does without its freelists.
"""

PARTS = ("about", "workloads", "memory", "pauses", "latency", "depth", "snapshots", "merge", "commands", "page")
PART = re.compile(r"<!-- part (\S+) (\S+) -->\n(.*?)\n<!-- end -->", re.DOTALL)
VERSION = "%d.%d" % sys.version_info[:2]


def table(head, rows):
    """A Markdown table; the first column is text, the others are aligned right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write(path, parts):
    """Put `parts` ({part: text}) into the running interpreter's section of the file at `path`."""
    path = pathlib.Path(path)
    known = {}
    if path.exists():
        for version, part, text in PART.findall(path.read_text()):
            known.setdefault(version, {})[part] = text
    known.setdefault(VERSION, {}).update(parts)
    known[VERSION].setdefault("about", f"- CPython {platform.python_version()}")
    pieces = [PREFACE]
    for version in sorted(known, key=lambda text: tuple(map(int, text.split(".")))):
        pieces.append(f"## CPython {version}\n")
        pieces += [
            f"<!-- part {version} {part} -->\n{known[version][part]}\n<!-- end -->\n"
            for part in PARTS
            if part in known[version]
        ]
    path.write_text("\n".join(pieces))


def put(path, parts):
    """The same for a document that is written by hand but for its parts: what it has no place for goes to its end."""
    path = pathlib.Path(path)
    document = path.read_text()
    for part, text in parts.items():
        marked = f"<!-- part {VERSION} {part} -->\n{text}\n<!-- end -->"
        place = re.compile(rf"<!-- part {re.escape(VERSION)} {part} -->\n.*?<!-- end -->", re.DOTALL)
        if place.search(document):
            document = place.sub(lambda _match, marked=marked: marked, document)
        else:
            document = f"{document.rstrip()}\n\n## CPython {VERSION}: {part}\n\n{marked}\n"
    path.write_text(document)
