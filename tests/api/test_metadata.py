"""Snapshot.metadata: what an analyst wants to know of the process, found out cheaply."""

import copy
import os
import pathlib
import pickle
import sys
import time

import extension
import heapledger
import pytest
from children import run

AT_TAKE = {
    "heapledger", "time", "host", "pid", "command", "executable", "python", "implementation", "traceback_limit",
    "numbers", "moment", "traced", "peak", "lost_records", "interruptions", "rss", "tables",
}  # fmt: skip


def total(snapshot):
    return sum(trace.size for trace in snapshot.traces)


def taken(limit=3):
    heapledger.start(limit)
    kept = [bytes(10_000) for _ in range(100)]
    del kept[10:]
    snapshot = heapledger.take_snapshot()
    heapledger.stop()
    return snapshot


def test_what_is_known():
    before = time.time_ns()
    snapshot = taken()
    after = time.time_ns()
    metadata = snapshot.metadata
    assert set(metadata) == AT_TAKE
    assert before <= metadata["time"] <= after
    assert metadata["pid"] == os.getpid() and metadata["host"] == os.uname().nodename
    assert metadata["command"] == sys.orig_argv and metadata["executable"] == sys.executable
    assert metadata["python"] == sys.version and metadata["implementation"] == "cpython"
    assert (metadata["moment"], metadata["traceback_limit"], metadata["lost_records"]) == ("live", 3, 0)
    assert 100_000 < metadata["traced"] < metadata["peak"] < 10_000_000 and metadata["peak"] > 1_000_000
    assert metadata["traced"] >= sum(trace.size for trace in snapshot.traces) > 100_000
    assert 2**20 < metadata["rss"] < 2**40 and 2**16 < metadata["tables"] < 2**30
    assert metadata["heapledger"][0].isdigit()


def test_metadata_and_counts_are_of_one_instant(tmp_path):
    """Threads without the GIL go on allocating while a snapshot is taken."""
    source = pathlib.Path(__file__).with_name("bugs_on_record.c")
    run(
        """
        import sys, heapledger
        sys.path.insert(0, sys.argv[1])
        import bugs_on_record
        heapledger.start()
        bugs_on_record.begin("both for long", 3)
        for _ in range(5_000):
            heapledger.reset_peak()
            snapshot = heapledger.take_peak_snapshot()
            metadata = snapshot.metadata
            assert metadata["traced"] <= metadata["peak"], metadata
        assert metadata["peak"] == sum(statistic.size for statistic in snapshot.statistics("filename"))
        bugs_on_record.end(False)
        """,
        extension.build(tmp_path, name="bugs_on_record", source=source),
    )


def test_metadata_of_a_trace():
    heapledger.start()
    before = [bytes(1_000_000) for _ in range(10)]
    del before[1:]
    with heapledger.trace() as trace:
        kept = [bytes(100_000) for _ in range(10)]
        del kept[1:]
        traced = heapledger.get_traced_memory()
    for snapshot in (trace.peak, trace.allocated, trace.leaked):
        assert snapshot.metadata["peak"] == total(trace.peak) < 3_000_000
        assert abs(snapshot.metadata["traced"] - traced[0]) < 10_000
    assert trace.start.metadata["traced"] == total(trace.start)


def test_each_look_gives_a_new_dict():
    snapshot = taken()
    snapshot.metadata["command"].append("x")
    snapshot.metadata["pid"] = 0
    assert snapshot.metadata["pid"] == os.getpid() and snapshot.metadata["command"] == sys.orig_argv
    assert vars(snapshot).keys() == {"traces", "traceback_limit"}


def test_what_is_saved(tmp_path):
    file = tmp_path / "file"
    snapshot = taken()
    for _ in range(2):  # and saved again by who has loaded it
        snapshot.dump(file)
        back = heapledger.Snapshot.load(file)
        now = back.metadata.pop("process_at_dump")
        assert {**back.metadata, "process_at_dump": now} == back.metadata
        expected = snapshot.metadata
        expected.pop("process_at_dump", None)
        assert {name: value for name, value in back.metadata.items() if name != "process_at_dump"} == expected
        assert now.keys() == {"time", "pages", "pymalloc_arenas", "malloc", "tables"}
        assert now["time"] >= expected["time"]
        snapshot = back
    assert back.metadata["process_at_dump"] == now
    assert 2**20 < now["pages"]["Rss"] < 2**40 and now["pages"]["Pss"] <= now["pages"]["Rss"]
    assert now["tables"].keys() == heapledger.memory().keys()
    assert {"Anonymous", "Swap"} <= now["pages"].keys()
    if now["malloc"] is not None:
        assert now["malloc"]["used"] + now["malloc"]["free"] == now["malloc"]["heap"] > 0


ARENAS = """
    import sys, heapledger
    from heapledger._ledger import _process_memory
    if sys.argv[1] == "traced":
        heapledger.start()
    before = _process_memory()[0]
    kept = [object() for _ in range(1_000_000)]
    after = _process_memory()[0]
    if before is None:
        print("unknown")
    else:
        assert 14_000_000 <= after - before < 80_000_000, (before, after)
        assert before % (1 << 18) == 0
        print("known")
    if heapledger.is_tracing():
        block = bytes(4321)  # the hooks are as they were
        assert heapledger.get_object_traceback(block) is not None
        assert heapledger._validate() is None
"""


@pytest.mark.parametrize("traced", ["traced", "untraced"])
@pytest.mark.parametrize(
    ("allocator", "answer"), [("pymalloc", "known"), ("pymalloc_debug", "known"), ("malloc", "unknown")]
)
def test_arenas(traced, allocator, answer):
    """While we trace, the interpreter does not see its own allocator below our hooks; it is asked without them."""
    assert run(ARENAS, traced, environment={"PYTHONMALLOC": allocator}).strip() == answer


def test_arenas_are_not_asked_for_where_others_run():
    """Another interpreter may have a lock of its own and allocate while our hooks are lifted."""
    run(
        """
        import heapledger
        from heapledger._ledger import _process_memory
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        heapledger.start()
        assert _process_memory()[0] is not None
        other = interpreters.create()
        assert _process_memory()[0] is None
        interpreters.destroy(other)
        assert _process_memory()[0] is not None
        """
    )


def test_filtered_snapshots_keep_it(tmp_path):
    snapshot = taken()
    for filters in ([], [heapledger.Filter(True, "*")], [heapledger.DomainFilter(False, 0)]):
        assert snapshot.filter_traces(filters).metadata == snapshot.metadata
    snapshot.dump(tmp_path / "file")
    back = heapledger.Snapshot.load(tmp_path / "file")
    assert back.filter_traces([heapledger.Filter(True, "*")]).metadata == back.metadata != {}


def test_snapshots_without(tmp_path):
    file = tmp_path / "file"
    made = heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)], 1)
    assert made.metadata == {} and made.filter_traces([]).metadata == {}
    for format in ("hlsnap", "tracemalloc"):
        made.dump(file, format)
        assert heapledger.Snapshot.load(file).metadata == {}
    taken().dump(file, "tracemalloc")
    assert heapledger.Snapshot.load(file).metadata == {}


def test_pickles_and_copies_are_as_ever():
    """They have the attributes, as the standard library's have; metadata are not among them."""
    snapshot = taken()
    snapshot.note = [1]
    for other in (pickle.loads(pickle.dumps(snapshot)), copy.copy(snapshot), copy.deepcopy(snapshot)):
        assert type(other) is heapledger.Snapshot and other.note == [1] and other.traces == snapshot.traces
        assert vars(other).keys() == {"traces", "traceback_limit", "note"}
        assert other.metadata == {}
    assert copy.copy(snapshot).note is snapshot.note and copy.deepcopy(snapshot).note is not snapshot.note
    assert pickle.loads(pickle.dumps(snapshot, 0)).note == [1]


class Special(heapledger.Snapshot):
    metadata = "the class's"


class Slotted(heapledger.Snapshot):
    __slots__ = ("extra",)


def test_an_attribute_of_this_name_is_the_user_s():
    snapshot = taken()
    with pytest.raises(AttributeError, match="no attribute 'metadata'"):
        del snapshot.metadata
    snapshot.metadata = "mine"
    assert snapshot.metadata == "mine" and vars(snapshot)["metadata"] == "mine"
    assert pickle.loads(pickle.dumps(snapshot)).metadata == "mine"
    del snapshot.metadata
    assert snapshot.metadata["pid"] == os.getpid()
    assert Special([], 1).metadata == "the class's"


def test_subclasses_with_slots():
    one = Slotted([], 1)
    one.extra, one.note = 5, 6
    back = pickle.loads(pickle.dumps(one))
    assert (type(back), back.extra, back.note, back.traceback_limit) == (Slotted, 5, 6, 1)


def test_a_forked_child_saves_its_parent_s_snapshot(tmp_path):
    """The process that saves is not the one that was measured, so nothing is said of it."""
    run(
        """
        import os, sys, heapledger
        heapledger.start()
        snapshot = heapledger.take_snapshot()
        child = os.fork()
        if child == 0:
            snapshot.dump(sys.argv[1])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        metadata = heapledger.Snapshot.load(sys.argv[1]).metadata
        assert metadata == snapshot.metadata and metadata["pid"] == os.getpid(), metadata
        """,
        tmp_path / "file",
    )


def test_taking_stays_cheap():
    """A snapshot of 10,000 sites takes less than a millisecond, the metadata included."""
    lines = "\n".join(f"x{n} = bytes({n % 997 + 20})" for n in range(10_000))
    code = compile(lines, "many", "exec")
    heapledger.start(1)
    namespace = {}
    exec(code, namespace)
    best = 1.0
    for _ in range(30):
        start = time.perf_counter()
        snapshot = heapledger.take_snapshot()
        best = min(best, time.perf_counter() - start)
    assert len(snapshot.statistics("lineno")) >= 10_000
    assert best < 0.001
