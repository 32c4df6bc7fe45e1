"""Captures: several moments of the ledger at one instant, in one file, and added up over processes."""

import threading

import heapledger
import pytest
from hlsnap_reader import read
from tracing import line

TAKE = {
    "live": heapledger.take_snapshot,
    "peak": heapledger.take_peak_snapshot,
    "allocated": heapledger.take_allocation_snapshot,
}


def total(snapshot):
    return sum(trace.size for trace in snapshot.traces)


def sums(snapshot):
    return sorted(map(str, snapshot.statistics("traceback")))


@pytest.fixture
def capture():
    heapledger.start(5)
    kept = [bytes(1000 + i) for i in range(50)]
    gone = [bytes(5000) for _ in range(100)]
    del gone
    taken = heapledger.take_capture()
    heapledger.stop()
    del kept
    return taken


def test_is_what_the_snapshots_are():
    heapledger.start(5)
    kept = [bytes(1000 + i) for i in range(50)]
    gone = [bytes(5000) for _ in range(100)]
    del gone
    capture, traced, allocated = heapledger.take_capture(), heapledger.get_traced_memory(), heapledger.allocated()
    alone = {moment: take() for moment, take in TAKE.items()}
    assert capture.moments == tuple(TAKE)
    assert (total(capture.live), total(capture.peak)) == traced
    assert (total(capture.allocated), len(capture.allocated.traces)) == allocated
    here = heapledger.Filter(True, __file__, line() - 8)
    for moment, snapshot in alone.items():
        one = getattr(capture, moment)
        assert one.metadata["moment"] == moment and one.traceback_limit == 5
        assert (one.metadata["traced"], one.metadata["peak"]) == traced
        assert one.filter_traces([here]).statistics("lineno") == snapshot.filter_traces([here]).statistics("lineno")
    assert capture.metadata == capture.live.metadata
    del kept


def test_not_tracing():
    with pytest.raises(RuntimeError, match="must be tracing"):
        heapledger.take_capture()
    with pytest.raises(TypeError, match="take_capture"):
        heapledger.Capture()


def test_file(tmp_path, capture):
    capture.dump(tmp_path / "file.hlsnap")
    loaded = heapledger.Capture.load(tmp_path / "file.hlsnap")
    assert loaded.moments == capture.moments
    for moment in capture.moments:
        before, after = getattr(capture, moment), getattr(loaded, moment)
        assert sums(after) == sums(before)
        assert after.metadata.pop("process_at_dump") is not None
        assert {**after.metadata, **before.metadata} == after.metadata
    assert sums(heapledger.Snapshot.load(tmp_path / "file.hlsnap")) == sums(capture.live)
    assert [one.moment for one in read((tmp_path / "file.hlsnap").read_bytes()).snapshots] == [0, 1, 2]


def test_three_moments_take_little_more_than_one(tmp_path, capture):
    capture.dump(tmp_path / "three.hlsnap")
    capture.allocated.dump(tmp_path / "one.hlsnap")
    assert (tmp_path / "three.hlsnap").stat().st_size < 2 * (tmp_path / "one.hlsnap").stat().st_size


def test_select(tmp_path, capture):
    peak = capture.select("peak")
    assert peak.moments == ("peak",) and peak.live is None
    peak.dump(tmp_path / "file.hlsnap")
    assert heapledger.Capture.load(tmp_path / "file.hlsnap").moments == ("peak",)
    for wrong in ((), ("dump",), ("live", "nothing")):
        with pytest.raises(ValueError):
            capture.select(*wrong)
    with pytest.raises(ValueError, match="there is no moment 'live'; there are peak"):
        peak.select("live")


def test_files_of_one_snapshot(tmp_path, capture):
    for moment in capture.moments:
        getattr(capture, moment).dump(tmp_path / "file.hlsnap")
        assert heapledger.Capture.load(tmp_path / "file.hlsnap").moments == (moment,)
    capture.live.dump(tmp_path / "pickle", format="tracemalloc")
    loaded = heapledger.Capture.load(tmp_path / "pickle")
    assert loaded.moments == ("live",) and sums(loaded.live) == sums(capture.live)
    loaded.dump(tmp_path / "again.hlsnap")
    assert sums(heapledger.Snapshot.load(tmp_path / "again.hlsnap")) == sums(capture.live)


def test_attributes(tmp_path, capture):
    capture.live.label = "before"
    capture.dump(tmp_path / "file.hlsnap")
    assert heapledger.Capture.load(tmp_path / "file.hlsnap").live.label == "before"
    capture.peak.label = "at the peak"
    with pytest.raises(TypeError, match="only the first snapshot"):
        capture.dump(tmp_path / "file.hlsnap")


def test_merge(tmp_path, capture):
    capture.dump(tmp_path / "file.hlsnap")
    files = [tmp_path / "file.hlsnap"] * 3
    for captures in (list(map(heapledger.Capture.load, files)), map(heapledger.Capture.load, files)):
        merged = heapledger.Capture.merge(captures)
        assert merged.moments == capture.moments
        for moment in capture.moments:
            expected = heapledger.Snapshot.merge([getattr(capture, moment)] * 3)
            assert sums(getattr(merged, moment)) == sums(expected)
    merged.dump(tmp_path / "merged.hlsnap")
    assert sums(heapledger.Capture.load(tmp_path / "merged.hlsnap").peak) == sums(merged.peak)


def test_merge_leaves_out_what_one_lacks(capture):
    merged = heapledger.Capture.merge([capture, capture.select("live", "peak")])
    assert merged.moments == ("live", "peak")
    with pytest.raises(ValueError, match="no moment in common"):
        heapledger.Capture.merge([capture.select("live"), capture.select("peak")])
    with pytest.raises(ValueError, match="no snapshot to merge"):
        heapledger.Capture.merge([])
    with pytest.raises(TypeError, match="must be Capture objects, not Snapshot"):
        heapledger.Capture.merge([capture, capture.live])


def test_one_instant():
    """While another thread allocates, the snapshots of a capture fit together."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            [bytes(700) for _ in range(100)]

    heapledger.start()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(200):
            capture = heapledger.take_capture()
            traced, peak = (capture.metadata[name] for name in ("traced", "peak"))
            assert total(capture.live) == traced <= peak == total(capture.peak)
    finally:
        stop.set()
        thread.join()
        heapledger.stop()


def test_taking_one_is_not_seen():
    heapledger.start()
    for _ in range(3):
        before = heapledger.take_capture()
        after = heapledger.take_capture()
    assert total(after.live) == total(before.live)
