"""The code of the documents: blocks with a name, ```python file=app.py, and what belongs to them."""

import os
import pathlib
import re
import subprocess
import sys

import heapledger

DOCUMENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
BLOCK = re.compile(r"^```(\w+) file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLED = str(pathlib.Path(heapledger.__file__).parent.parent)


def write_files(document, folder):
    """Write the document's named blocks into a folder, as its reader would; their names."""
    blocks = BLOCK.findall((DOCUMENTS / document).read_text())
    for _, name, text in blocks:
        pathlib.Path(folder, name).write_text(text)
    return [name for _, name, _ in blocks]


def start(*command, folder, **variables):
    """A process in that folder, with pipes."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(list(map(str, command)), cwd=folder, env=environment, **pipes)


def python(*arguments, folder, expect=0, **variables):
    """What an interpreter in that folder says."""
    process = start(sys.executable, *arguments, folder=folder, **variables)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == expect, f"{process.returncode}\n{said}"
    return said
