"""Exported files, given to the tools that they are for: Go's pprof, speedscope's importer; and their sums."""

import csv
import gzip
import io
import json
import pathlib
import re
import subprocess

import heapledger
import pytest
import stored
from outside import need

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parent.parent / "tools"
MOMENTS = {"live": "inuse", "peak": "peak", "allocated": "alloc"}


def total(moment, name="new.hlsnap"):
    """(bytes, blocks)"""
    found = getattr(heapledger.Capture.load(stored.GOLDEN / name), moment).statistics("filename")
    return sum(one.size for one in found), sum(one.count for one in found)


# --- pprof ---


@pytest.fixture
def profile(fine, tmp_path):
    fine("export", "new.hlsnap", "--format", "pprof", "-o", tmp_path / "app.pb.gz")
    return tmp_path / "app.pb.gz"


def pprof(*arguments):
    need("go")
    program = subprocess.check_output([TOOLS / "pprof"], text=True).strip()
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("moment", MOMENTS)
def test_pprof_top(profile, moment):
    for what, expected in zip(("space", "objects"), total(moment), strict=True):
        text = pprof("-top", "-unit=B", "-nodefraction=0", f"-sample_index={MOMENTS[moment]}_{what}", profile)
        assert re.search(rf"100% of {expected}B? total$", text, re.MULTILINE), text
        rows = re.findall(r"^ *(\d+)B? +[\d.]+% +[\d.]+% +\d+B? +[\d.]+%  (.*)$", text, re.MULTILINE)
        assert sum(int(flat) for flat, _ in rows) == expected
        names = [name for _, name in rows]
        assert "load" in names and "größe" in names and "[link=https://example.org]markup" in names


def test_pprof_shows_what_was_asked_for(fine, tmp_path):
    for arguments, name in (((), "inuse_space"), (("--peak",), "peak_space")):
        fine("export", "new.hlsnap", "--format", "pprof", "-o", tmp_path / "out", *arguments)
        assert f"Type: {name}\n" in pprof("-top", tmp_path / "out")


def test_pprof_raw(profile):
    """Every sample is one of our stacks, with the same frames and values."""
    text = pprof("-raw", profile)
    samples, locations = text.partition("Samples:\n")[2].split("Locations\n")
    names, *rows = samples.strip().splitlines()
    assert names.replace("[dflt]", "").split() == [
        f"{MOMENTS[moment]}_{what}/{unit}"
        for moment in MOMENTS
        for what, unit in (("objects", "count"), ("space", "bytes"))
    ]
    lines = {}
    for line in locations.partition("Mappings")[0].splitlines():
        found = re.match(r" *(\d+): 0x0 M=1 (.*?) ([/<].*):(\d+):0 s=0$", line)
        if found:
            lines[int(found[1])] = found[2], int(found[4])
    expected = {}
    capture = heapledger.Capture.load(stored.GOLDEN / "new.hlsnap")
    for place, moment in enumerate(MOMENTS):
        for one in getattr(capture, moment).statistics("traceback"):
            key = tuple((frame.name, frame.lineno) for frame in reversed(one.traceback))
            values = expected.setdefault(key, [0] * 6)
            values[2 * place] += one.count
            values[2 * place + 1] += one.size
    found = {}
    for row in rows:
        values, numbers = row.split(":")
        stack = tuple(lines.get(int(number)) for number in numbers.split())
        if None not in stack:  # a name with an end of line in it breaks pprof's own listing
            found[stack] = [int(value) for value in values.split()]
    odd = {key for key in expected if any("\x1b" in name for name, _ in key)}
    assert len(rows) == len(expected)
    assert all(expected.get(stack) == values for stack, values in found.items())
    assert expected.keys() - found.keys() == odd


def test_pprof_is_the_same_every_time(fine, profile, tmp_path):
    fine("export", "new.hlsnap", "--format", "pprof", "-o", tmp_path / "again")
    assert gzip.decompress((tmp_path / "again").read_bytes()) == gzip.decompress(profile.read_bytes())
    assert (tmp_path / "again").read_bytes() == profile.read_bytes()


def test_pprof_of_a_pickle_has_what_it_has(fine, tmp_path):
    fine("export", "stdlib.pickle", "--format", "pprof", "-o", tmp_path / "out")
    text = pprof("-raw", tmp_path / "out")
    assert "inuse_space/bytes" in text and "peak" not in text and "alloc" not in text


# --- speedscope ---


def speedscope(filename):
    need("node")
    need("npm")
    package = subprocess.check_output([TOOLS / "speedscope"], text=True).strip()
    done = subprocess.run(
        [need("node"), HERE / "speedscope_import.js", package, filename], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_speedscope(fine, tmp_path):
    fine("export", "new.hlsnap", "--format", "speedscope", "-o", tmp_path / "app.speedscope.json", "--peak")
    group = speedscope(tmp_path / "app.speedscope.json")
    assert group["name"] == "new.hlsnap" and group["shown"] == 0
    assert group["profiles"][0]["name"] == "peak, bytes" and group["profiles"][0]["unit"] == "bytes"
    totals = {profile["name"]: profile["total"] for profile in group["profiles"]}
    assert totals == {
        f"{moment}, {what}": value
        for moment in MOMENTS
        for what, value in zip(("bytes", "blocks"), total(moment), strict=True)
    }
    frames = {(frame["name"], frame["file"]) for frame in group["profiles"][0]["frames"]}
    assert {(name, file) for file, name, _, new in stored.MAKERS if new[0]} <= frames


def test_speedscope_reads_collapsed_stacks(fine, tmp_path):
    fine("export", "new.hlsnap", "--format", "collapsed", "-o", tmp_path / "app.folded")
    (profile,) = speedscope(tmp_path / "app.folded")["profiles"]
    assert profile["total"] == total("live")[0]


# --- what needs no other tool ---


@pytest.mark.parametrize("moment", MOMENTS)
def test_collapsed(fine, moment):
    lines = fine("export", "new.hlsnap", "--format", "collapsed", "--moment", moment).split("\n")[:-1]
    found = [re.fullmatch(r"(\S.*) (\d+)", line) for line in lines]
    assert all(found) and sum(int(one[2]) for one in found) == total(moment)[0]
    snapshot = getattr(heapledger.Capture.load(stored.GOLDEN / "new.hlsnap"), moment)
    assert len(lines) == len(snapshot.statistics("traceback"))


def test_csv(fine):
    rows = list(csv.DictReader(io.StringIO(fine("export", "new.hlsnap", "--format", "csv"), newline="")))
    for moment in MOMENTS:
        sums = sum(int(row[f"{moment}_bytes"]) for row in rows), sum(int(row[f"{moment}_blocks"]) for row in rows)
        assert sums == total(moment)
    assert "/app/escape\x1b[31m\x07\nnext.py" in {row["file"] for row in rows}


def test_json(fine):
    value = json.loads(fine("export", "new.hlsnap", "--format", "json"))
    for moment in MOMENTS:
        sums = [sum(stack[moment][what] for stack in value["stacks"]) for what in ("bytes", "blocks")]
        assert tuple(sums) == total(moment)
    files = {frame["file"] for frame in value["frames"]}
    assert {"/app/\udcff.py", "/app/\u202egnp.py"} <= files
    assert value["metadata"]["pid"] == 4321


@pytest.mark.parametrize("name", ["pprof", "speedscope", "collapsed", "csv", "json"])
def test_filters(fine, tmp_path, name):
    whole = stored.GOLDEN / "new.hlsnap"
    fine("export", whole, "--format", name, "-o", tmp_path / "all")
    fine("export", whole, "--format", name, "-o", tmp_path / "some", "--include", "/app/shop/*")

    def content(filename):
        data = (tmp_path / filename).read_bytes()
        return gzip.decompress(data) if name == "pprof" else data

    assert b"json/decoder.py" in content("all") and b"json/decoder.py" not in content("some")
    assert b"/app/shop/orders.py" in content("some")
