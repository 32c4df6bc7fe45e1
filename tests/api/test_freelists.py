"""While heapledger traces, the interpreter keeps no dead objects: each is at its own line, and stop() undoes it."""

import contextvars
import gc
import itertools
import sys

import heapledger
import pytest
from children import run, with_interpreters
from tracing import line


async def numbers():
    yield 1


# How an object of each kind that has a freelist in some version is made, with the line in its own hands.
MAKERS = {
    "list": lambda: [numbers],
    "dict": lambda: {},
    "dict with keys": lambda: {"a": numbers, "b": 2},
    "tuple": lambda: (numbers, 1, 2),
    "slice": lambda: slice(numbers, 2),
    "range": lambda: range(1, len(MAKERS) * 1000),
    "iterator of a list": lambda: iter([1]),
    "iterator of a tuple": lambda: iter((1, numbers)),
    "iterator of a range": lambda: iter(range(5000)),
    "context": lambda: contextvars.copy_context(),
    "method": lambda: Maker().make,
    "builtin method": lambda: [].append,
    "step of an async generator": lambda: numbers().asend(None),
}


class Maker:
    def make(self):
        return self


def churn():
    """Dead objects of all kinds, as many as the longest freelist takes."""
    for _ in range(3):
        kept = [make() for make in MAKERS.values() for _ in range(300)]
        for step in kept[-300:]:
            step.close()
        del kept


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("nframe", [1, 3])
def test_each_object_is_at_its_own_line(kind, nframe):
    make = MAKERS[kind]
    churn()
    heapledger.start(nframe)
    for turn in range(60):
        if turn % 20 == 0:
            gc.collect()  # a full collection turns some lists on again
        churn()
        object_ = make()
        found = heapledger.get_object_traceback(object_)
        assert found is not None and found[-1].lineno == make.__code__.co_firstlineno, (turn, found)
        if hasattr(object_, "aclose") or kind.startswith("step"):
            object_.close()
    assert heapledger._validate() is None


@pytest.mark.parametrize("kind", ["float", "int"])
def test_numbers(kind):
    """Asked for, numbers are at their own lines, too."""
    million = 1_000_000
    heapledger.start(1, numbers=True)
    for turn in range(200):
        if turn % 50 == 0:
            gc.collect()
        [(number * 1.5, number * 3) for number in range(million, million + 300)]
        made = turn * 1.7 + 0.3 if kind == "float" else turn + million
        assert heapledger.get_object_traceback(made)[0].lineno == line() - 1
    assert heapledger._validate() is None


def test_numbers_leave_nothing_behind():
    callbacks = list(gc.callbacks)
    heapledger.start(1, numbers=True)
    heapledger.start(1, numbers=True)
    heapledger.stop()
    heapledger.stop()
    assert gc.callbacks == callbacks


def test_lists_are_empty_of_what_is_traced():
    """A dead object is not in the ledger."""
    heapledger.start(1)
    before = heapledger.get_traced_memory()[0]
    kept = [([], {"a": 1}, (1, make)) for make in itertools.repeat(churn, 500)]
    assert heapledger.get_traced_memory()[0] > before + 50_000
    del kept
    assert heapledger.get_traced_memory()[0] - before < 1000


def free_blocks(make):
    """Does a dead object's memory stay out of the allocator's hands?"""
    kept = [make() for _ in range(70)]
    before = sys.getallocatedblocks()
    del kept
    return before - sys.getallocatedblocks()


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_stop_restores(kind):
    """The lists keep dead objects before and after, and none meanwhile."""
    make = {"list": lambda: [], "tuple": lambda: (make, 1), "dict": lambda: {}}[kind]
    gc.collect()
    for turn in range(3):
        gc.collect()
        assert free_blocks(make) < 20, turn
        heapledger.start(1)
        assert free_blocks(make) >= 70, turn
        heapledger.stop()
    assert type(make()).__name__ == kind and type(make()) in (list, tuple, dict)


NESTED = """
    import gc, sys
    import heapledger
    def nest(make, depth=400_000):
        nested = None
        for _ in range(depth):
            nested = make(nested)
        return nested
    MAKERS = [lambda x: [x], lambda x: (x,), lambda x: {1: x}, lambda x: [{2: (x,)}]]
"""


def test_trashcan():
    """What is nested deeply is destroyed without a deep recursion, also if tracing starts or stops in between."""
    run(
        NESTED
        + """
    class Stopper:
        def __del__(self):
            heapledger.stop()
    for make in MAKERS:
        for started, stopped in ((False, False), (True, False), (True, True), (False, True)):
            if started:
                heapledger.start(1)
            nested = nest(make)
            if not started:
                heapledger.start(1)
            if stopped:
                heapledger.stop()
            del nested
            if not stopped:
                assert heapledger._validate() is None
            heapledger.stop()
        heapledger.start(1)
        nested = nest(make, 1000)
        for _ in range(1000):
            nested = make([nested, Stopper()])
        del nested
        assert not heapledger.is_tracing()
    assert [type(one) for one in ([], {}, (1, Stopper))] == [list, dict, tuple]
    """
    )


def test_collection_while_an_object_dies():
    run(
        NESTED
        + """
    class Collector:
        def __del__(self):
            gc.collect()
            [[], {}, (self, 1)]
    heapledger.start(2)
    for make in MAKERS:
        for _ in range(20):
            nested = nest(make, 30)
            nested = make([nested, Collector()])
            cycle = [nested]
            cycle.append(cycle)
            del nested, cycle
    gc.collect()
    assert heapledger._validate() is None
    """
    )


def test_subclasses():
    class List(list):
        pass

    class Tuple(tuple):
        __slots__ = ()

    class Dict(dict):
        pass

    heapledger.start(1)
    for _ in range(100):
        for made in (List([1]), Tuple((1, numbers)), Dict(a=1)):
            assert heapledger.get_object_traceback(made) is not None
        del made
    heapledger.stop()
    assert type(List()) is List and type(Tuple()) is Tuple and type(Dict()) is Dict


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the empty tuple is immortal")
def test_the_empty_tuple_survives():
    """An extension that gives back too many references lets the interpreter destroy it, which does nothing."""
    run(
        """
        import ctypes
        import heapledger
        heapledger.start(1)
        ctypes.c_ssize_t.from_address(id(())).value = 0
        empty = tuple([])
        del empty
        assert type(()) is tuple and () == tuple([])
        import os
        os._exit(0)
        """
    )


def test_destructor_of_another_tool(companion):
    """It stays where it was put, over ours."""
    run(
        NESTED
        + """
    sys.path.insert(1, sys.argv[1])
    import companion
    def check(traced):
        churned = [[] for _ in range(100)]
        del churned
        made = [1]; line = sys._getframe().f_lineno
        if traced:
            assert heapledger.get_object_traceback(made)[0].lineno == line
            assert heapledger._validate() is None
    heapledger.start(1)
    companion.wrap_destructor()
    check(True)
    heapledger.stop()
    check(False)
    heapledger.start(1)
    check(True)
    heapledger.stop()
    assert companion.unwrap_destructor() > 200
    heapledger.start(1)
    check(True)
    heapledger.stop()
    check(False)
    """,
        companion,
    )


def test_type_that_inherits_while_we_trace(companion):
    run(
        NESTED
        + """
    sys.path.insert(1, sys.argv[1])
    import companion
    heapledger.start(1)
    Heir = companion.inherit()
    for _ in range(2):
        assert type(Heir([1])) is Heir
        nested = nest(lambda x: Heir([x]), 1_000_000)
        del nested
        assert heapledger._validate() is None
        heapledger.stop()
    """,
        companion,
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no watchers of dicts before 3.12")
def test_dict_that_its_watcher_revives(companion):
    run(
        """
        import sys
        sys.path.insert(1, sys.argv[1])
        import companion, heapledger
        heapledger.start(1)
        for _ in range(100):
            watched = {"a": 1}; line = sys._getframe().f_lineno
            companion.watch(watched)
            del watched
            alive = companion.give_back()
            assert type(alive) is dict and alive == {"a": 1}
            assert heapledger.get_object_traceback(alive)[0].lineno == line
            alive["b"] = 2
            del alive
        assert heapledger._validate() is None
        """,
        companion,
    )


def test_interpreters():
    """Each has freelists of its own, also one that starts later, and one that starts the tracer."""
    with_interpreters('''
        SOURCE = """
        import heapledger, sys
        def churn():
            return [([], {}, (1, churn)) for _ in range(300)]
        churn()
        for _ in range(20):
            churn()
            made = [[], {"a": 1}, (1, churn)]; line = sys._getframe().f_lineno
            for one in made:
                assert heapledger.get_object_traceback(one)[-1].lineno == line, (one, line)
        """
        older = create()
        execute(older, "import heapledger; kept = [([], {}) for _ in range(300)]; del kept")
        heapledger.start(1)
        execute(older, SOURCE)
        newer = create()
        execute(newer, SOURCE)
        assert heapledger._validate() is None
        heapledger.stop()
        execute(older, "import heapledger; heapledger.start(1)")
        execute(newer, SOURCE)
        exec(textwrap.dedent(SOURCE))
        for one in (older, newer):
            _interpreters.destroy(one)
        assert heapledger._validate() is None
    ''')


def test_fork_and_the_end():
    """A child goes on without freelists, and the interpreter ends as it would."""
    run(
        """
        import os, sys
        import heapledger
        heapledger.start(1)
        child = os.fork()
        made = [1]; line = sys._getframe().f_lineno
        assert heapledger.get_object_traceback(made)[0].lineno == line
        if child == 0:
            heapledger.stop()
            [[] for _ in range(100)]
            heapledger.start(1)
            sys.exit(heapledger._validate() is not None)
        assert os.waitpid(child, 0)[1] == 0
        class Last:
            def __del__(self):
                heapledger.stop(), heapledger.start(1)
        sys.last = Last()
        """,
        options=["-W", "ignore"],
    )


def test_debug_statistics(capfd):
    """The interpreter prints how long its lists are, whatever we did to them."""
    heapledger.start(1)
    sys._debugmallocstats()
    heapledger.stop()
    assert "free PyListObject" in capfd.readouterr().err
