"""The magics in a real notebook: executed by nbclient, in a real kernel on the loopback interface.

Runs by tools/check-notebooks, in an environment that has Jupyter.
"""

import base64
import html
import json
import pathlib
import re
import zlib

import pytest

nbclient = pytest.importorskip("nbclient", reason="there is no Jupyter here; tools/check-notebooks has it")
nbformat = pytest.importorskip("nbformat")

CELLS = [
    "%load_ext heapledger",
    "%%heapledger\nkept = [bytes(1000) for _ in range(1000)]\npassing = bytes(3_000_000)\ndel passing\nlen(kept)",
    "%%heapledger --no-graph --top 1\ndef make():\n    return bytes(2_000_000)\nblock = make()",
    "%%heapledger --no-graph\nimport asyncio\nawait asyncio.sleep(0)\nlater = bytes(1_500_000)",
    "%heapledger_diff",
    "more = [bytes(500) for _ in range(2000)]",
    "%heapledger_diff --top 3",
    "%heapledger_diff stop\nimport heapledger\nheapledger.is_tracing()",
    "%%heapledger --no-graph\n1 / 0",
    "%%heapledger\n1 +",
    "%%heapledger\nimport heapledger\nheapledger.stop()",
    "%%heapledger\nimport heapledger\nheapledger.stop()\n1 / 0",
    "try:\n    get_ipython().run_cell_magic('heapledger', '--no-graph', '1 / 0')\nexcept ZeroDivisionError:\n    [][7]",
    "[][8]",
    "%%heapledger --nframe 0\npass",
    "%%heapledger --top -1\npass",
    "%heapledger_diff --top 0",
    "%%heapledger --no-graph\none = object()",
    "%%heapledger --no-graph\n1 / 0",
    "get_ipython().last_execution_succeeded",
]
DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "notebooks.md"
BLOCKS = re.findall(r"(?:^    .*\n)+", DOCUMENT.read_text(), re.MULTILINE)
IN_DOCUMENT = [block.replace("\n    ", "\n").strip() for block in BLOCKS]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS + IN_DOCUMENT])
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(
        notebook, timeout=60, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook.cells


@pytest.fixture(scope="module")
def errors(cells):
    """For each cell the tracebacks that it shows, without colours."""
    shown = [["\n".join(output.traceback) for output in cell.outputs if "traceback" in output] for cell in cells]
    return [[re.sub("\x1b\\[[0-9;]*m", "", text) for text in texts] for texts in shown]


@pytest.fixture(scope="module")
def outputs(cells):
    """For each cell all its outputs: (text, html or None)."""
    found = []
    for cell in cells:
        data = [output.get("data", {}) for output in cell.outputs]
        text = "\n".join(one.get("text/plain", "") for one in data)
        text += "".join(output.get("text", "") + output.get("ename", "") for output in cell.outputs)
        found.append((text, "".join(one.get("text/html", "") for one in data)))
    return found


def test_a_cell(outputs):
    text, page = outputs[1]
    assert "1000" in text  # the cell's own result
    title = re.search(r"peak \+(\S+) MiB, allocated (\S+) MiB in (\d+) blocks, left behind (\S+) MiB", text)
    assert title, text
    peak, allocated, blocks, left = map(float, title.groups())
    # IPython shows the result from within the cell's last line, which adds to all but the peak.
    assert 3.8 <= peak <= 3.9 and 3.8 <= allocated < 6 and blocks > 1001 and 1.0 <= left < 1.5
    rows = text[title.end() :].splitlines()[2:]
    assert "passing = bytes(3_000_000)" in rows[0] and "kept = [bytes(1000) for _ in range(1000)]" in rows[1]
    assert "<table>" in page and "passing = bytes(3_000_000)" in page
    assert page.count("<iframe") == 1 and 'sandbox="allow-scripts"' in page and "&lt;script" in page


def test_the_graph_of_a_cell_begins_with_its_lines(outputs):
    """The page knows the cell for the program's own code, and folds IPython."""
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', outputs[1][1]).group(1))
    data = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page).group(1)
    content = zlib.decompress(base64.b64decode(data), -zlib.MAX_WBITS)
    header = json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
    own = [
        name for name, kind in zip(header["files"], header["kindOfFile"], strict=True) if header["kinds"][kind] == "own"
    ]
    assert header["fold"] == "libraries" and len(own) == 1 and "ipykernel_" in own[0]  # not the one with the magic
    assert "kept = [bytes(1000) for _ in range(1000)]" in header["sources"]


def test_the_line_of_the_cell_that_led_there(outputs):
    text, page = outputs[2]
    assert "return bytes(2_000_000)" in text.splitlines()[-1] and "iframe" not in page


def test_await_in_a_cell(outputs):
    assert "a magic cannot await" in outputs[3][0] and "left behind" not in outputs[3][0]


def test_differences(outputs):
    assert "the next %heapledger_diff" in outputs[4][0]
    text, page = outputs[6]
    assert re.search(r"since the last time: \+\d+\.\d [KM]iB, \+\d+ blocks", text), text
    assert "more = [bytes(500) for _ in range(2000)]" in text and "more = [" in page
    # The line of the cell is the first, and what IPython has allocated is one row at most.
    _, _, first, *others = text.splitlines()
    assert "more = [" in first and "site-packages" not in text and sum("[no line" in row for row in others) <= 1
    assert "False" in outputs[7][0]


def test_the_document(outputs):
    found = outputs[len(CELLS) :]
    assert len(found) == 4 and not any("Error" in text for text, _ in found)
    assert "rows = [bytes(1000) for _ in range(1000)]" in found[1][1] and "<iframe" in found[1][1]


def test_a_cell_that_fails(outputs, errors):
    """IPython shows the error, once, as it would without the magic; then comes the table."""
    assert "ZeroDivisionError" in outputs[8][0] and "left behind" in outputs[8][0]
    assert len(errors[8]) == 1 and "_notebook.py" not in errors[8][0] and "1 / 0" in errors[8][0]
    assert outputs[19][0] == "False"  # the cell has failed, so that those below are not run
    assert len(errors[9]) == 1 and "_notebook.py" not in errors[9][0] and "SyntaxError" in errors[9][0]
    assert "left behind" not in outputs[9][0]  # nothing has run


def test_a_cell_that_stops_the_tracer(outputs, errors):
    assert "UsageError: the memory of this cell is unknown because the cell stopped the tracer" in outputs[10][0]
    assert errors[10] == [] and "left behind" not in outputs[10][0]
    assert len(errors[11]) == 1 and "ZeroDivisionError" in errors[11][0] and "UsageError" not in outputs[11][0]


def test_errors_of_others_are_shown(outputs, errors):
    """The error of a cell is kept from being shown again, and no other."""
    assert [error.count("IndexError") > 0 for error in errors[12]] == [False, True]
    assert len(errors[13]) == 1 and "IndexError" in errors[13][0]


def test_numbers_of_options(outputs, errors):
    assert "UsageError: argument -n/--nframe: must be a whole number from 1 to 65535, not '0'" in outputs[14][0]
    for number, wrong in ((15, "-1"), (16, "0")):
        said = f"UsageError: argument -t/--top: must be a whole number of at least 1, not '{wrong}'"
        assert said in outputs[number][0]
    assert errors[14] == errors[15] == errors[16] == []


def test_one_block(outputs):
    assert " in 1 block, " in outputs[17][0]
