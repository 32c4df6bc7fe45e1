"""Sums by a key, in C, against a model; what the key's function does wrong is its own affair."""

import heapledger
import pytest
import stored
from heapledger._ledger import _greatest, _sum_by


def model(snapshot, key, all_frames):
    sums = {}
    for one in snapshot.statistics("traceback"):
        frames = one.traceback if all_frames else one.traceback[-1:]
        for found in {key(frame.filename, frame.lineno, frame.name) for frame in frames}:
            size, count = sums.get(found, (0, 0))
            sums[found] = size + one.size, count + one.count
    return sums


KEYS = [
    lambda filename, line, function: (filename, line),
    lambda filename, line, function: function,
    lambda filename, line, function: len(filename) % 3,
    lambda filename, line, function: None,
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("all_frames", [False, True])
def test_sums(key, all_frames):
    capture = heapledger.Capture.load(stored.GOLDEN / "new.hlsnap")
    for moment in capture.moments:
        snapshot = getattr(capture, moment)
        assert _sum_by(snapshot, key, all_frames) == model(snapshot, key, all_frames)
    pickled = heapledger.Snapshot.load(stored.GOLDEN / "stdlib.pickle")
    assert _sum_by(pickled, key, all_frames) == model(pickled, key, all_frames)


def test_an_empty_snapshot():
    assert _sum_by(heapledger.Snapshot([], 1), KEYS[0], True) == {}


def test_keys_that_cannot_be():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    with pytest.raises(ZeroDivisionError):
        _sum_by(snapshot, lambda *frame: 1 / 0, False)
    with pytest.raises(TypeError, match="unhashable"):
        _sum_by(snapshot, lambda *frame: [], False)
    with pytest.raises(TypeError):
        _sum_by(snapshot, None, False)
    with pytest.raises(TypeError):
        _sum_by(None, KEYS[0], False)


def test_memory_is_given_back():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    heapledger.start()
    kept = [_sum_by(snapshot, KEYS[0], True)]
    before = heapledger.get_traced_memory()[0]
    for _ in range(50):
        kept[0] = _sum_by(snapshot, KEYS[0], True)
        with pytest.raises(ZeroDivisionError):
            _sum_by(snapshot, lambda *frame: 1 / 0, False)
    assert heapledger.get_traced_memory()[0] - before < 10_000


@pytest.mark.parametrize("key_type", ["lineno", "filename", "traceback"])
def test_the_greatest_are_the_first_of_all(key_type):
    old, new = (heapledger.Snapshot.load(stored.GOLDEN / f"{name}.hlsnap") for name in ("old", "new"))
    pickled = heapledger.Snapshot.load(stored.GOLDEN / "stdlib.pickle")
    for one in (old, new, pickled):
        every = one.statistics(key_type)
        for limit in (0, 1, 3, len(every), len(every) + 1):
            assert _greatest(one, None, key_type, limit) == (every[:limit], len(every))
    for before, after in ((old, new), (new, old), (pickled, new), (new, pickled), (new, new)):
        changed = [one for one in after.compare_to(before, key_type) if one.size_diff or one.count_diff]
        for limit in (0, 1, 3, len(changed), len(changed) + 1):
            assert _greatest(after, before, key_type, limit) == (changed[:limit], len(changed))


def test_what_has_no_greatest():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    for wrong in ((None, None, "lineno", 1), (snapshot, 1, "lineno", 1), (snapshot, None, None, 1)):
        with pytest.raises(TypeError):
            _greatest(*wrong)
    with pytest.raises(ValueError, match="unknown key_type: 'line'"):
        _greatest(snapshot, None, "line", 1)
    assert _greatest(heapledger.Snapshot([], 1), None, "lineno", 1) == ([], 0)
    assert _greatest(snapshot, None, "lineno", -1)[0] == []
