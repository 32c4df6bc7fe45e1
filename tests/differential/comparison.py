"""Compare the traces that two engines have of the same blocks.

A trace is (domain, size, ((file, line), ... newest first), total_nframe). Two lists of them agree when they are equal
as multisets. Everything else must be an Explanation: named, with the precise condition under which it holds, and taking
out of the comparison no more than it must. What it takes out is still compared as far as it can be.
"""

import contextvars
import sys
from collections import Counter
from dataclasses import dataclass, field

NO_REFERENCE_HOOK = sys.version_info < (3, 13)


@dataclass(frozen=True)
class Explanation:
    """Blocks of these sizes may have another traceback; how many there are of each size must still agree."""

    name: str
    sizes: frozenset
    reason: str


def freelist_reuse(async_generators=False):
    """3.11 and 3.12 have no hook for an object handed out from a freelist, so heapledger keeps the traceback of the
    block's first allocation, where the stdlib (called by the interpreter itself) takes the new one.

    Only the sizes that such types have are excused. Keys of dicts are on a freelist too but are not objects, so neither
    engine hears of their reuse. None on 3.13 and later."""
    if not NO_REFERENCE_HOOK:
        return None
    sizes = {sys.getsizeof(1.0), sys.getsizeof([]), sys.getsizeof({}), sys.getsizeof(slice(None))}
    sizes |= {sys.getsizeof((None,) * length) for length in range(1, 21)}
    sizes.add(sys.getsizeof(contextvars.Context()))
    if async_generators:
        sizes |= async_generator_sizes()
    return Explanation("freelist reuse", frozenset(sizes), freelist_reuse.__doc__)


def async_generator_sizes():
    """What asend() and the values yielded by an async generator are wrapped in."""

    async def values():
        yield 1

    step = values().asend(None)
    size = sys.getsizeof(step)
    step.close()
    wrapped = 16 + 16 + 8  # collector's head, object head, the value: no such object can be had from Python
    return {size, wrapped}


def resurrection(sizes):
    """An object that its __del__ keeps alive is a new reference to the interpreter: the stdlib gives it the traceback
    of that moment. heapledger on 3.11 and 3.12 is not told. `sizes`: of the objects that the program revives."""
    if not NO_REFERENCE_HOOK or not sizes:
        return None
    return Explanation("resurrection", frozenset(sizes), resurrection.__doc__)


@dataclass
class Report:
    differences: list = field(default_factory=list)  # one sentence each; empty: the engines agree
    compared: int = 0  # traces compared whole
    excused: dict = field(default_factory=dict)  # name of the explanation -> traces with another traceback


def compare(ours, theirs, limit, ignored_files=(), explanations=()):
    """`ignored_files`: traces whose newest frame is there were made by the harness or by an engine."""
    report = Report()
    explanations = [explanation for explanation in explanations if explanation is not None]
    report.differences += check_totals(ours, limit)
    ours, theirs = Counter(map(without_cut_total(limit), ours)), Counter(map(without_cut_total(limit), theirs))
    for explanation in explanations:
        check_counts(ours, theirs, explanation, report)
    excused_sizes = frozenset().union(*(explanation.sizes for explanation in explanations))

    def taking_part(traces):
        return Counter(
            {
                trace: count
                for trace, count in traces.items()
                if trace[2][0][0] not in ignored_files and trace[1] not in excused_sizes
            }
        )

    ours, theirs = taking_part(ours), taking_part(theirs)
    report.compared = theirs.total()
    check_sums("line", ours, theirs, lambda trace: trace[2][0], report)
    check_sums("traceback", ours, theirs, lambda trace: trace[2], report)
    missing, surplus = theirs - ours, ours - theirs
    report.differences += [f"only the stdlib has {count} x {show(trace)}" for trace, count in first(missing)]
    report.differences += [f"only heapledger has {count} x {show(trace)}" for trace, count in first(surplus)]
    return report


def without_cut_total(limit):
    """The depth of a stack deeper than the limit is not compared: heapledger gives the depth when it was first seen."""

    def normal(trace):
        domain, size, frames, total = trace
        return domain, size, frames, (total if total <= limit else "cut")

    return normal


def check_totals(traces, limit):
    wrong = [
        trace
        for trace in traces
        if len(trace[2]) > limit or trace[3] < len(trace[2]) or (trace[3] > len(trace[2]) and len(trace[2]) != limit)
    ]
    return [f"depth and total do not fit the limit {limit}: {show(trace)} total {trace[3]}" for trace in wrong[:5]]


def check_counts(ours, theirs, explanation, report):
    """All traces take part, whatever their file: a freelist may hand a block of the harness to the program."""
    ours_here = Counter({trace: count for trace, count in ours.items() if trace[1] in explanation.sizes})
    theirs_here = Counter({trace: count for trace, count in theirs.items() if trace[1] in explanation.sizes})
    report.excused[explanation.name] = (theirs_here - ours_here).total()
    ours_sums, theirs_sums = Counter(), Counter()
    for traces, sums in ((ours_here, ours_sums), (theirs_here, theirs_sums)):
        for trace, count in traces.items():
            sums[trace[:2]] += count
    for key in sorted(ours_sums.keys() | theirs_sums.keys()):
        if ours_sums[key] != theirs_sums[key]:
            report.differences.append(
                f"{explanation.name}: domain {key[0]}, size {key[1]}: the stdlib has {theirs_sums[key]} blocks, "
                f"heapledger {ours_sums[key]}"
            )
            report.differences += [
                f"  stdlib {count} x {show(trace)}"
                for trace, count in first(Counter({t: n for t, n in (theirs_here - ours_here).items() if t[:2] == key}))
            ]
            report.differences += [
                f"  heapledger {count} x {show(trace)}"
                for trace, count in first(Counter({t: n for t, n in (ours_here - theirs_here).items() if t[:2] == key}))
            ]


def check_sums(what, ours, theirs, key, report):
    sums = {}
    for position, traces in enumerate((theirs, ours)):
        for trace, count in traces.items():
            entry = sums.setdefault(key(trace), [0, 0, 0, 0])
            entry[position] += trace[1] * count
            entry[position + 2] += count
    wrong = [(place, entry) for place, entry in sums.items() if entry[0] != entry[1] or entry[2] != entry[3]]
    for place, entry in sorted(wrong, key=repr)[:5]:
        report.differences.append(
            f"{what} {place}: the stdlib has {entry[0]} bytes in {entry[2]} blocks, heapledger {entry[1]} in {entry[3]}"
        )


def first(traces, most=8):
    return sorted(traces.items(), key=repr)[:most]


def show(trace):
    frames = " < ".join(f"{file.rpartition('/')[2]}:{line}" for file, line in trace[2][:6])
    return f"domain {trace[0]} size {trace[1]} at {frames}"
