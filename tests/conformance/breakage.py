"""Break heapledger's engine on purpose: everything that it counts, groups or matches is answered wrong.

What a conformance run says with this in place is how much of it tests heapledger at all. Constructors, attributes and
texts of the classes stay whole, so the tests get as far as the engine.
"""

import sys

import heapledger


def nothing(*arguments, **keywords):
    return None


def answering(value):
    return lambda *arguments, **keywords: value


def negated(method):
    return lambda *arguments: not method(*arguments)


def empty_snapshot(*arguments, **keywords):
    return heapledger.Snapshot((), 0)


FUNCTIONS = {
    "start": nothing,
    "stop": nothing,
    "clear_traces": nothing,
    "reset_peak": nothing,
    "is_tracing": negated(heapledger.is_tracing),
    "get_traced_memory": answering((0, 0)),
    "get_traceback_limit": answering(0),
    "get_tracemalloc_memory": answering(-1),
    "get_object_traceback": nothing,
    "_get_object_traceback": nothing,
    "_get_traces": answering([]),
    "take_snapshot": empty_snapshot,
}


def replace(name, value):
    for module in (heapledger, heapledger._ledger, sys.modules["tracemalloc"], sys.modules["_tracemalloc"]):
        setattr(module, name, value)


def pretend_stopped():
    """For the process that runs the tests: many of them do nothing if they find tracing on."""
    replace("is_tracing", answering(False))


def break_engine():
    for name, wrong in FUNCTIONS.items():
        replace(name, wrong)
    heapledger.Snapshot.statistics = answering([])
    heapledger.Snapshot.compare_to = answering([])
    heapledger.Snapshot.filter_traces = empty_snapshot
    heapledger.Filter._match_frame = negated(heapledger.Filter._match_frame)
    heapledger.Filter._match_traceback = negated(heapledger.Filter._match_traceback)
    heapledger.Traceback.format = answering([])
