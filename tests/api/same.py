"""Ask both implementations the same thing and compare what they answer."""

import tracemalloc

import heapledger

MODULES = ("heapledger._ledger.", "_tracemalloc.", "tracemalloc.", "heapledger.")


def outcome(function, *arguments, **named):
    """("value", result) or ("error", type, text); the text without the name of the module, which a C function shows."""
    try:
        return "value", function(*arguments, **named)
    except Exception as error:
        text = str(error)
        for module in MODULES:
            text = text.replace(module, "")
        return "error", type(error), text


def same_outcome(ours, theirs, *arguments, **named):
    """Both raise the same error, or neither raises; returns the two values."""
    our_outcome, their_outcome = outcome(ours, *arguments, **named), outcome(theirs, *arguments, **named)
    if "error" in (our_outcome[0], their_outcome[0]):
        assert our_outcome == their_outcome, f"arguments {arguments!r} {named!r}"
        return None, None
    return our_outcome[1], their_outcome[1]


def both(name):
    return getattr(heapledger, name), getattr(tracemalloc, name)


def frames_of(traceback):
    return tuple((frame.filename, frame.lineno) for frame in traceback)


def flat(statistic):
    """A Statistic or StatisticDiff of either implementation as a plain tuple."""
    parts = [frames_of(statistic.traceback), statistic.traceback.total_nframe, statistic.size, statistic.count]
    if hasattr(statistic, "size_diff"):
        parts += [statistic.size_diff, statistic.count_diff]
    return tuple(parts)


def flat_all(statistics):
    return [flat(statistic) for statistic in statistics]


def tuples(snapshot):
    """The traces of a snapshot of either implementation as plain tuples."""
    return [tuple(trace) for trace in snapshot.traces._traces]
