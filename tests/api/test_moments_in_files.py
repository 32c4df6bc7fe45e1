"""Snapshots of the peak and of allocations in files: what they hold, and that they say what they are."""

import heapledger
import pytest


@pytest.mark.parametrize(
    ("take", "moment"),
    [
        (heapledger.take_snapshot, "live"),
        (heapledger.take_peak_snapshot, "peak"),
        (heapledger.take_allocation_snapshot, "allocated"),
    ],
)
def test_round_trip(tmp_path, take, moment):
    heapledger.start(5)
    try:
        kept = [bytes(1000 + i) for i in range(50)]
        gone = [bytes(5000) for _ in range(100)]
        del gone
        snapshot = take()
        if moment == "peak":
            _, peak = heapledger.get_traced_memory()
    finally:
        heapledger.stop()
    assert snapshot.metadata["moment"] == moment
    snapshot.dump(tmp_path / "file.hlsnap")
    loaded = heapledger.Snapshot.load(tmp_path / "file.hlsnap")
    assert loaded.metadata["moment"] == moment
    for key in ("filename", "lineno", "traceback"):
        assert loaded.statistics(key) == snapshot.statistics(key)
    sizes = [trace.size for trace in loaded.traces]
    assert sizes.count(len(bytes(5000)) + b"".__sizeof__()) == (0 if moment == "live" else 100)
    if moment == "peak":
        assert sum(sizes) == peak
    del kept
