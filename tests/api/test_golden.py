"""Files that earlier versions and the standard library wrote still load, with all that is in them."""

import json
import pathlib

import heapledger
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
FILES = sorted(path.name for path in GOLDEN.iterdir() if path.suffix in (".hlsnap", ".pickle"))


def test_there_are_some():
    assert {"live-1.0.hlsnap", "made-1.0.hlsnap"} <= set(FILES)
    assert {"stdlib-3.11.pickle", "stdlib-3.13.pickle", "stdlib-3.15.pickle"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_golden(name):
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    snapshot = heapledger.Snapshot.load(GOLDEN / name)
    attributes = {key: value for key, value in vars(snapshot).items() if key not in ("traces", "traceback_limit")}
    found = {
        "names": [[frame.name for frame in trace.traceback] for trace in snapshot.traces],
        "traces": json.loads(json.dumps(snapshot.traces._traces)),
        "traceback_limit": snapshot.traceback_limit,
        "attributes": {key: repr(value) for key, value in attributes.items()},
        "statistics": [[str(one.traceback), one.size, one.count] for one in snapshot.statistics("filename", True)],
        "metadata": snapshot.metadata,
    }
    assert found == expected
