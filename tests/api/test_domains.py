"""Arrays of numpy and tables of pandas, which report their memory under domains of their own. Each test has a child."""

import importlib.util
import json
import textwrap

import pytest
from children import run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numpy") is None, reason="numpy is not installed: there is no wheel for this interpreter"
)

HELPERS = """
import heapledger, importlib, json, sys

def in_domain(domain, engine=heapledger):
    return engine.take_snapshot().filter_traces([engine.DomainFilter(True, domain)])

def arrays_bytes(engine=heapledger):
    return sum(trace.size for trace in in_domain(389047, engine).traces)

def by_line(snapshot):
    counts = {}
    for trace in snapshot.traces:
        for frame in trace.traceback:
            if frame.filename == __file__:
                count = counts.setdefault(frame.lineno, [0, 0])
                count[0] += 1
                count[1] += trace.size
    return counts

def consistent():
    assert heapledger._validate() is None, heapledger._validate()
    assert heapledger.lost_records() == 0
"""


def run_numpy(source, *arguments):
    return run(HELPERS + textwrap.dedent(source), *arguments, timeout=120)


PROGRAM = """
    engine = importlib.import_module(sys.argv[1])
    if sys.argv[2] == "started first":
        engine.start(8)
    import numpy; import_line = sys._getframe().f_lineno
    engine.start(8)
    assert numpy.lib.tracemalloc_domain == 389047
    numpy.ones(3), numpy.arange(10), numpy.array(["x"])
    before = arrays_bytes(engine)

    def make(size):
        return numpy.zeros(size)

    arrays = [make(size) for size in range(1, 3000, 7)]
    arrays += [numpy.ones((rows, 3), dtype="i4") for rows in range(1, 500)]
    arrays.append(numpy.empty(10_000_000))
    grown = numpy.arange(10)
    grown.resize(100_000, refcheck=False)
    shrunk = numpy.arange(100_000)
    shrunk.resize(10, refcheck=False)
    arrays += [grown, shrunk]
    arrays.append(numpy.array(["text" * 20] * 1000))
    arrays.append(arrays[0] + 1)
    arrays += [array.copy() for array in arrays[:50]]
    view = arrays[100][:10]
    del arrays[::3]
    large = [trace for trace in engine.take_snapshot().traces if trace.size >= 80_000_000]
    assert len(large) <= 1, large           # in one domain, not in two
    owned = {id(array): array.nbytes for array in [*arrays, grown, shrunk, view.base]}
    assert arrays_bytes(engine) - before == sum(owned.values()), (arrays_bytes(engine), before, sum(owned.values()))
    program = by_line(in_domain(389047, engine))
    program.pop(import_line, None)
    del arrays, grown, shrunk, view
    assert arrays_bytes(engine) == before
    print(json.dumps(program))
    consistent()
"""


def test_arrays_are_the_stdlib_s_and_add_up():
    """Line by line, whether tracing began before numpy was imported (which takes the stdlib long) or after."""
    theirs = json.loads(run_numpy(PROGRAM, "tracemalloc", "imported first"))
    assert len(theirs) >= 8
    for order in ("imported first", "started first"):
        assert json.loads(run_numpy(PROGRAM, "heapledger", order)) == theirs, order


def test_the_manual_s_way_of_finding_arrays():
    """Nothing but the import differs from a program for tracemalloc."""
    output = run(
        """
        import heapledger as tracemalloc
        import numpy as np

        def main():
            tracemalloc.start(5)
            arrays = [np.zeros((100, 100)), np.ones(500)]
            snapshot = tracemalloc.take_snapshot()
            only_arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
            for statistic in snapshot.filter_traces([only_arrays]).statistics("traceback"):
                print(statistic.count, statistic.size)
                print("\\n".join(statistic.traceback.format(most_recent_first=True)))

        main()
        """
    )
    assert output.startswith("1 80000\n") and "1 4000\n" in output
    assert output.count("arrays = [np.zeros((100, 100)), np.ones(500)]") == 2 and "in main" not in output


def test_an_array_is_one_allocation():
    """numpy 2.5 takes memory that the hooks see, and then reports it under its own domain."""
    run_numpy("""
        import numpy
        heapledger.start(2)
        before = heapledger.allocated()[0]
        array = numpy.empty(10_000_000)
        assert 80_000_000 <= heapledger.allocated()[0] - before < 81_000_000
        assert 80_000_000 <= heapledger.get_traced_memory()[1] < 81_000_000
        del array

        def domains(snapshot):
            return [trace.domain for trace in snapshot.traces if trace.size == 80_000_000]

        assert domains(heapledger.take_allocation_snapshot()) == [389047]
        # Once; and in domain 0 if the peak was first reached before numpy reported it: compat.md.
        assert domains(heapledger.take_peak_snapshot()) in ([0], [389047])
        consistent()
    """)


def test_freed_in_another_thread():
    run_numpy("""
        import threading, numpy
        heapledger.start(4)
        before = arrays_bytes()
        arrays = [[numpy.zeros(1000 + thread) for _ in range(200)] for thread in range(4)]
        assert arrays_bytes() - before == sum(200 * 8 * (1000 + thread) for thread in range(4))

        def work(number):
            arrays[number].clear()
            mine = [numpy.ones(500) for _ in range(200)]
            arrays[number] = mine[::2]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert arrays_bytes() - before == 4 * 100 * 4000
        consistent()
    """)


def test_rounds_of_start_and_stop():
    """What was reported in an earlier round, or untraced, is unknown in the next and no trouble when it goes."""
    run_numpy("""
        import numpy
        kept = [numpy.zeros(100)]
        for round in range(4):
            heapledger.start(round + 1)
            assert arrays_bytes() == 0
            kept += [numpy.zeros(1000) for _ in range(10)]
            assert arrays_bytes() == 80_000
            del kept[:5]
            heapledger.clear_traces()
            assert arrays_bytes() == 0
            del kept[-5:]
            kept.append(numpy.zeros(2000))
            assert arrays_bytes() == 16_000 <= heapledger.get_traced_memory()[0]
            consistent()
            heapledger.stop()
            kept.append(numpy.zeros(100))
            kept.pop(0)
    """)


def test_both_tracers():
    run_numpy("""
        import numpy, tracemalloc
        tracemalloc.start(3)
        heapledger.start(3)
        arrays = [numpy.zeros(size) for size in range(1, 1000)]
        nbytes = sum(array.nbytes for array in arrays)
        assert arrays_bytes() == arrays_bytes(tracemalloc) == nbytes
        assert by_line(in_domain(389047)) == by_line(in_domain(389047, tracemalloc))
        del arrays[::2]
        assert arrays_bytes() == arrays_bytes(tracemalloc) == sum(array.nbytes for array in arrays)
        heapledger.stop()
        arrays.append(numpy.zeros(5000))
        assert arrays_bytes(tracemalloc) == sum(array.nbytes for array in arrays)
        heapledger.start(3)
        tracemalloc.stop()
        arrays.append(numpy.zeros(7000))
        assert arrays_bytes() == 56_000
    """)


def test_fork():
    run_numpy("""
        import os, numpy
        heapledger.start(2)
        arrays = [numpy.zeros(1000) for _ in range(10)]
        child = os.fork()
        if child == 0:
            try:
                assert arrays_bytes() == 80_000
                arrays.pop()
                arrays.append(numpy.zeros(3000))
                assert arrays_bytes() == 72_000 + 24_000
                import numpy.testing
                consistent()
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert arrays_bytes() == 80_000
        consistent()
    """)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed: there is no wheel")
def test_hash_tables_of_pandas():
    program = """
        engine = importlib.import_module(sys.argv[1])
        import numpy, pandas
        engine.start(3)
        keys = [str(number) for number in range(20_000)]
        strings, numbers = pandas.Index(keys, dtype=object), pandas.Index(range(0, 90_000, 3)).astype("int64")
        assert strings.get_loc("77") == 77 and numbers.get_loc(300) == 100
        frame = pandas.DataFrame({"key": keys, "value": numpy.arange(20_000)})
        total = frame.groupby("key").sum()
        tables = by_line(in_domain(424242, engine))
        assert sum(size for _, size in tables.values()) > 100_000
        print(json.dumps([tables, by_line(in_domain(389047, engine))]))
        consistent()
    """
    assert json.loads(run_numpy(program, "heapledger")) == json.loads(run_numpy(program, "tracemalloc"))
