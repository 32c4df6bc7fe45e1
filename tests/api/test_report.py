"""heapledger report without a browser: what is in the page, and what is not.

The data are read by a decoder of their own here, written from the description in heapledger/report/_data.py.
"""

import base64
import contextlib
import hashlib
import html
import io
import json
import os
import re
import zlib

import heapledger
import pytest
from heapledger import command
from heapledger.command import Failure
from heapledger.command._kinds import CUT, Kinds
from heapledger.command._names import package_of
from heapledger.report import _data, _page, _subject

FRAMES = [("/srv/app.py", 3), ("/usr/lib/python3.11/json/decoder.py", 7), ("<frozen importlib._bootstrap>", 9)]


def traces(*sizes):
    """Traces of 1, 2, 3 frames and so on; the newest frame comes first."""
    return [(0, size, tuple(FRAMES[place % 3 :: -1]), 3) for place, size in enumerate(sizes)]


def write(path, *sizes):
    heapledger.Snapshot(traces(*sizes), 3).dump(path, format="hlsnap")
    return str(path)


def capture_series(folder, count=4):
    """Files of this process, taken one after the other; in the third, what the others have is gone."""
    names, kept, other = [], [], []
    heapledger.start(5)
    try:
        for number in range(count):
            if number == 2:
                del kept[:]
                other.append(bytearray(500))
            else:
                kept.append([bytearray(1000) for _ in range(10 * (number + 1))])
            names.append(str(folder / f"step{number}.hlsnap"))
            heapledger.take_capture().dump(names[-1])
    finally:
        heapledger.stop()
    return names


def unpack(data):
    """(header, arrays) of packed data."""
    data = zlib.decompress(data, -zlib.MAX_WBITS)
    length = int.from_bytes(data[:4], "little")
    header, at, arrays = json.loads(data[4 : 4 + length]), 4 + length, []
    for count, width in header["arrays"]:
        planes = [data[at + plane * count : at + (plane + 1) * count] for plane in range(width)]
        arrays.append([sum(plane[i] << 8 * k for k, plane in enumerate(planes)) for i in range(count)])
        at += count * width
    assert at == len(data)
    return header, arrays


def stacks(data):
    """(header, [{path: (own bytes, own blocks)} for each column])."""
    header, (depths, locations, files, lines, functions, _, *rest) = unpack(data)
    assert depths[0] == locations[0] == 0
    paths, path = [()], [None]
    for depth, location in zip(depths[1:], locations[1:], strict=True):
        assert 0 < depth <= len(path) and location > 0
        del path[depth:]
        name = (header["files"][files[location]], lines[location], header["functions"][functions[location]] or None)
        path.append(name)
        # What stands above a joint is a guess.
        known = 1 + max((place for place, one in enumerate(path) if one and one[0] == CUT), default=0)
        paths.append(tuple(path[known:]))
    columns, column = [], {}
    for index, whole in enumerate(header["columns"]):
        distances, sizes, blocks = rest[3 * index : 3 * index + 3]
        column, node = {} if whole else dict(column), 0
        for distance, size, count in zip(distances, sizes, blocks, strict=True):
            node += distance
            column[paths[node]] = (size, count)
        columns.append({key: value for key, value in column.items() if value[1]})
    return header, columns


def expected(snapshot):
    found = {}
    for trace in snapshot.traces:
        key = tuple((frame.filename, frame.lineno, frame.name) for frame in trace.traceback)
        size, count = found.get(key, (0, 0))
        found[key] = (size + trace.size, count + 1)
    return found


def test_one_capture(tmp_path):
    (name,) = capture_series(tmp_path, 1)
    subject = _subject.load([name])
    header, columns = stacks(_data.encode(subject))
    capture = heapledger.Capture.load(name)
    assert header["moments"] == ["live", "peak", "allocated"]
    assert columns == [expected(getattr(capture, moment)) for moment in header["moments"]]
    for total, column in zip(header["totals"], columns, strict=True):
        assert total["bytes"] == sum(size for size, _ in column.values())
        assert total["blocks"] == sum(count for _, count in column.values())
    assert header["captures"][0]["pid"] == os.getpid()


def test_two_files_are_a_difference_and_more_of_one_process_a_series(tmp_path):
    names = capture_series(tmp_path)
    subject = _subject.load(names[:2])
    assert (subject.mode, subject.labels) == ("difference", ["step0.hlsnap", "step1.hlsnap"])
    subject = _subject.load(names[::-1])
    assert (subject.mode, subject.labels) == ("series", [f"step{number}.hlsnap" for number in range(4)])
    _, columns = stacks(_data.encode(subject))
    captures = [heapledger.Capture.load(name) for name in names]
    wanted = [expected(getattr(capture, moment)) for moment in subject.moments for capture in captures]
    assert columns == wanted


def test_files_of_several_processes_are_merged(tmp_path):
    names = [write(tmp_path / f"{number}.hlsnap", 10, 20 * number) for number in range(1, 4)]
    subject = _subject.load(names)
    assert (subject.mode, subject.labels) == ("one", ["1.hlsnap and 2 more"])
    header, _ = stacks(_data.encode(subject))
    assert header["totals"] == [{"bytes": 30 + 120, "blocks": 6}]
    assert _subject.load(names, "series").mode == "series"
    assert _subject.load(names[:2], "merge").mode == "one"
    assert _subject.load(names[:1], "series").mode == "one"
    with pytest.raises(Failure, match="needs two files, not 3"):
        _subject.load(names, "difference")


def test_files_without_a_moment_in_common(tmp_path):
    (name,) = capture_series(tmp_path, 1)
    names = []
    for moment in ("live", "peak"):
        names.append(str(tmp_path / f"{moment}.hlsnap"))
        heapledger.Capture.load(name).select(moment).dump(names[-1])
    for way in (None, "merge", "series"):
        with pytest.raises(Failure, match="no moment in common"):
            _subject.load(names, way)


def test_a_served_column_is_that_of_the_page(tmp_path):
    subject = _subject.load(capture_series(tmp_path))
    tree = _data.Tree(subject.snapshots)
    header, (depths, locations, files, lines, functions, sources) = unpack(_data.encode_tree(subject, tree))
    assert header["columns"] == []
    whole, arrays = unpack(_data.encode(subject))
    assert [depths, locations, files, lines, functions, sources] == arrays[:6]
    for index, snapshot in enumerate(subject.snapshots):
        _, (distances, sizes, blocks) = unpack(_data.encode_column(tree, index))
        assert sum(sizes) == whole["totals"][index]["bytes"] and sum(blocks) == whole["totals"][index]["blocks"]
        assert sum(distances) < len(depths) and 0 not in blocks
        assert len(blocks) == len(expected(snapshot))


def test_large_numbers(tmp_path):
    subject = _subject.load([write(tmp_path / "large.hlsnap", 2**60 + 1, 0, 255, 256)])
    _, (column,) = stacks(_data.encode(subject))
    assert sorted(column.values()) == [(0, 1), (255, 1), (2**60 + 257, 2)]


def test_nothing_at_all(tmp_path):
    subject = _subject.load([write(tmp_path / "empty.hlsnap")])
    header, columns = stacks(_data.encode(subject))
    assert columns == [{}] and header["totals"] == [{"bytes": 0, "blocks": 0}]


@pytest.mark.parametrize(
    ("name", "kind", "package"),
    [
        ("/home/me/shop/app.py", "own", "/home/me/shop"),
        ("app.py", "own", "app.py"),
        ("/usr/lib/python3.11/json/decoder.py", "stdlib", "json"),
        ("/opt/python/lib/python3.13t/asyncio/events.py", "stdlib", "asyncio"),
        ("/usr/lib/python3.11/importlib/__init__.py", "importlib", "importlib"),
        ("/usr/lib/python3.11/importlib/metadata/__init__.py", "stdlib", "importlib"),
        ("/usr/lib/python311.zip/importlib/util.py", "importlib", "/usr/lib/python311.zip/importlib"),
        ("/srv/importlib/util.py", "own", "/srv/importlib"),
        ("<frozen importlib._bootstrap>", "importlib", "importlib"),
        ("<frozen os>", "stdlib", "os"),
        ("/venv/lib/python3.12/site-packages/numpy/core/x.py", "site-packages", "numpy"),
        ("/usr/lib/python3/dist-packages/six.py", "site-packages", "six"),
        ("<string>", "other", "<string>"),
        ("<unknown>", "other", "<unknown>"),
        ("<cut>", "cut", "<cut>"),
        ("", "own", ""),
    ],
)
def test_kinds_of_files(name, kind, package):
    assert (Kinds([]).of(name), package_of(name)) == (kind, package)


METADATA = {"python": "3.12.4 (main)", "executable": "/srv/venv/bin/python"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/usr/lib/python3.12/json/decoder.py", "stdlib"),
        ("/usr/lib64/python3.12t/json/decoder.py", "stdlib"),
        ("/usr/lib/python3.11/json/decoder.py", "own"),  # not the library of this interpreter
        ("/usr/lib/python312.zip/json/decoder.py", "stdlib"),
        ("/srv/venv/bin/uvicorn", "site-packages"),
        ("/srv/venv/bin/script.py", "own"),
        ("/srv/venv/bin/folder/uvicorn", "own"),
        ("/srv/venv/bin/Lib/os.py", "stdlib"),  # an interpreter that runs where it was built
        ("<ipython-input-1>", "own"),
        ("<ipython-input-2>", "other"),
    ],
)
def test_kinds_of_files_of_an_interpreter(name, kind):
    assert Kinds([METADATA, METADATA], {"<ipython-input-1>": "own"}).of(name) == kind


@pytest.mark.parametrize("odd", [{}, {"python": 3, "executable": None}, {"python": "x", "executable": ""}])
def test_kinds_without_metadata(odd):
    kinds = Kinds([METADATA, odd])
    assert kinds.of("/usr/lib/python3.11/json/decoder.py") == "stdlib"
    assert kinds.of("/srv/app.py") == "own"


def test_only_lines_of_python_files_are_in_the_page(tmp_path):
    """A capture that somebody else has made could name any file of this machine."""
    for name in ("secret", "program.py"):
        (tmp_path / name).write_text(f"first line\nsecond line of {name}\n")
    named = [(0, 8, ((str(tmp_path / name), 2),), 1) for name in ("secret", "program.py")]
    heapledger.Snapshot(named, 1).dump(tmp_path / "made.hlsnap", format="hlsnap")
    header, _ = stacks(_data.encode(_subject.load([str(tmp_path / "made.hlsnap")])))
    assert header["sources"] == ["", "second line of program.py"]


# --- the page ---


def report(*arguments, cwd):
    """The command, in this process: (exit status, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command.main(["report", *map(str, arguments)])
    return status, out.getvalue(), err.getvalue()


def data_of(page):
    return base64.b64decode(re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page).group(1))


def test_the_command_writes_a_page(tmp_path):
    (name,) = capture_series(tmp_path, 1)
    status, out, err = report(name, cwd=tmp_path)
    assert (status, out) == (0, "")
    assert err.startswith("report.html: a page, ")
    page = (tmp_path / "report.html").read_text()
    header, _ = unpack(data_of(page))
    assert header["mode"] == "one"
    assert "<title>step0.hlsnap - heapledger</title>" in page


def test_the_policy_names_the_script_and_the_style_and_nothing_else(tmp_path):
    page = _page.make("title", "data")
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for rule, pattern in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        (text,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == "'none'"
    assert not re.search(r"""(?:src|href)\s*=\s*["']?[^"'#\s]|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)


@pytest.mark.parametrize(
    "odd", ["<script>alert(1)</script>", "</script><b>", "a\u2028\u2029b", "{{script}}", "]]>&lt;"]
)
def test_names_are_never_markup(tmp_path, odd):
    name = tmp_path / f"{odd.replace('/', '∕')}.hlsnap"
    heapledger.Snapshot([(0, 8, ((odd, 1),), 1)], 1).dump(name, format="hlsnap")
    assert report(name, "-o", "page.html", cwd=tmp_path)[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert odd in unpack(data_of(page))[0]["files"]
    title = re.search(r"<title>(.*?)</title>", page).group(1)
    assert "<" not in title and page.count("<title>") == 1
    assert page.replace(title, "").count(odd) == _page.make("", "").count(odd)
    assert page.count("<script") == _page.make("", "").count("<script")


def test_confidential(tmp_path):
    secret = "/home/somebody/secret_project/plan.py"
    space = {}
    exec(compile("def secret_function(kept):\n    kept.append(bytearray(5000))\n", secret, "exec"), space)
    heapledger.start(5)
    try:
        kept = []
        space["secret_function"](kept)
        heapledger.take_capture().dump(tmp_path / "secret_file.hlsnap")
    finally:
        heapledger.stop()
    assert report(tmp_path / "secret_file.hlsnap", "--confidential", "-o", "page.html", cwd=tmp_path)[0] == 0
    page = (tmp_path / "page.html").read_text()
    header, columns = stacks(data_of(page))
    for word in ("secret", "somebody", f'"{os.uname().nodename}"', os.path.basename(__file__), "pytest"):
        assert word not in json.dumps(header), word
    assert "secret" not in page
    assert any(size >= 5000 for size, _ in columns[0].values())
    assert re.fullmatch(r"file-\d+\.py", header["files"][0]) and len(set(header["files"])) == len(header["files"])
    assert [header["captures"][0][name] for name in ("command", "host", "pid", "python")] == [None] * 4


def test_what_cannot_be_done(tmp_path):
    name = write(tmp_path / "a.hlsnap", 1)
    (tmp_path / "bad.hlsnap").write_bytes(b"not a snapshot")
    for arguments, complaint in (
        (["none.hlsnap"], "cannot read none.hlsnap: No such file"),
        (["bad.hlsnap"], "cannot read bad.hlsnap: "),
        ([name, "-o", tmp_path / "no" / "folder.html"], "cannot write "),
        (["--diff", name], "a difference needs two files, not 1"),
    ):
        status, out, err = report(*arguments, cwd=tmp_path)
        assert (status, out) == (2, "") and err.startswith(f"heapledger report: {complaint}"), err
    assert not (tmp_path / "report.html").exists()
