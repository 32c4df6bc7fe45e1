"""Sums by a key, in C, against a model; what the key's function does wrong is its own affair."""

import heapledger
import pytest
import stored
from heapledger._ledger import _split, _sum_by, _top_statistics


def model(snapshot, key, frames):
    sums = {}
    for one in snapshot.statistics("traceback"):
        keys = [key(frame.filename, frame.lineno, frame.name) for frame in reversed(one.traceback)]
        known = [one for one in (keys[:1] if frames == "newest" else keys) if one is not None] or [None]
        for found in set(known[:1] if frames == "first" else known):
            size, count = sums.get(found, (0, 0))
            sums[found] = size + one.size, count + one.count
    return sums


KEYS = [
    lambda filename, line, function: (filename, line),
    lambda filename, line, function: function,
    lambda filename, line, function: len(filename) % 3,
    lambda filename, line, function: line if line % 3 else None,
    lambda filename, line, function: None,
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("frames", ["newest", "first", "all"])
def test_sums(key, frames):
    capture = heapledger.Capture.load(stored.GOLDEN / "new.hlsnap")
    for moment in capture.moments:
        snapshot = getattr(capture, moment)
        assert _sum_by(snapshot, key, frames) == model(snapshot, key, frames)
    pickled = heapledger.Snapshot.load(stored.GOLDEN / "stdlib.pickle")
    assert _sum_by(pickled, key, frames) == model(pickled, key, frames)


def test_an_empty_snapshot():
    assert _sum_by(heapledger.Snapshot([], 1), KEYS[0], "all") == {}


def test_keys_that_cannot_be():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    with pytest.raises(ZeroDivisionError):
        _sum_by(snapshot, lambda *frame: 1 / 0, "newest")
    with pytest.raises(TypeError, match="unhashable"):
        _sum_by(snapshot, lambda *frame: [], "newest")
    with pytest.raises(TypeError):
        _sum_by(snapshot, None, "newest")
    with pytest.raises(TypeError):
        _sum_by(None, KEYS[0], "newest")
    with pytest.raises(ValueError, match="unknown frames: 'oldest'"):
        _sum_by(snapshot, KEYS[0], "oldest")


def test_memory_is_given_back():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    heapledger.start()
    kept = [_sum_by(snapshot, KEYS[0], "all")]
    before = heapledger.get_traced_memory()[0]
    for _ in range(50):
        kept[0] = _sum_by(snapshot, KEYS[0], "all")
        with pytest.raises(ZeroDivisionError):
            _sum_by(snapshot, lambda *frame: 1 / 0, "newest")
    assert heapledger.get_traced_memory()[0] - before < 10_000


@pytest.mark.parametrize("key_type", ["lineno", "filename", "traceback"])
def test_the_greatest_are_the_first_of_all(key_type):
    old, new = (heapledger.Snapshot.load(stored.GOLDEN / f"{name}.hlsnap") for name in ("old", "new"))
    pickled = heapledger.Snapshot.load(stored.GOLDEN / "stdlib.pickle")
    for one in (old, new, pickled):
        every = one.statistics(key_type)
        for limit in (0, 1, 3, len(every), len(every) + 1):
            assert _top_statistics(one, None, key_type, limit) == (every[:limit], len(every))
    for before, after in ((old, new), (new, old), (pickled, new), (new, pickled), (new, new)):
        changed = [one for one in after.compare_to(before, key_type) if one.size_diff or one.count_diff]
        for limit in (0, 1, 3, len(changed), len(changed) + 1):
            assert _top_statistics(after, before, key_type, limit) == (changed[:limit], len(changed))


def test_what_has_no_greatest():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    for wrong in ((None, None, "lineno", 1), (snapshot, 1, "lineno", 1), (snapshot, None, None, 1)):
        with pytest.raises(TypeError):
            _top_statistics(*wrong)
    with pytest.raises(ValueError, match="unknown key_type: 'line'"):
        _top_statistics(snapshot, None, "line", 1)
    assert _top_statistics(heapledger.Snapshot([], 1), None, "lineno", 1) == ([], 0)
    assert _top_statistics(snapshot, None, "lineno", -1)[0] == []


# --- parts ---


def newest_answer(one, answer):
    answers = [answer(frame.filename, frame.lineno, frame.name) for frame in reversed(one.traceback)]
    return next((bool(one) for one in answers if one is not None), False)


@pytest.mark.parametrize("key", KEYS[2:])
def test_parts(key):
    capture = heapledger.Capture.load(stored.GOLDEN / "new.hlsnap")
    pickled = heapledger.Snapshot.load(stored.GOLDEN / "stdlib.pickle")
    for snapshot in (capture.live, capture.peak, pickled, heapledger.Snapshot([], 1)):
        parts = _split(snapshot, key)
        for part, wanted in zip(parts, (False, True), strict=True):
            every = [one for one in snapshot.statistics("traceback") if newest_answer(one, key) == wanted]
            assert part.statistics("traceback") == every
            assert part.traceback_limit == snapshot.traceback_limit


def test_parts_that_cannot_be():
    snapshot = heapledger.Snapshot.load(stored.GOLDEN / "new.hlsnap")
    for wrong in ((None, KEYS[0]), (snapshot,), (snapshot, None)):
        with pytest.raises(TypeError):
            _split(*wrong)
    with pytest.raises(ZeroDivisionError):
        _split(snapshot, lambda *frame: 1 / 0)
    heapledger.start()
    kept = [_split(snapshot, KEYS[2])]
    before = heapledger.get_traced_memory()[0]
    for _ in range(50):
        kept[0] = _split(snapshot, KEYS[2])
    assert heapledger.get_traced_memory()[0] - before < 10_000
