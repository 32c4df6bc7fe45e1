"""Compare the traces that two engines have of the same blocks.

A trace is (domain, size, ((file, line), ... newest first), total_nframe). Two lists of them agree when they are equal
as multisets. Everything else must be an Explanation: named, with the precise condition under which it holds, and taking
out of the comparison no more than it must. What it takes out is still compared as far as it can be.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Explanation:
    """Blocks of these sizes may have another traceback; how many there are of each size must still agree."""

    name: str
    sizes: frozenset
    reason: str
    counted: bool = True  # False: not even how many there are is compared


def recycled_numbers():
    """Freelists of numbers are on unless start() is asked for numbers. So a number has the traceback of the first one
    in its memory, where the stdlib (called by the interpreter itself) takes its own. Some are the harness' own for one
    of them and the program's for the other, so their number differs, too. The round with numbers compares them all."""
    sizes = {sys.getsizeof(1.5)}
    if sys.version_info >= (3, 14):
        sizes |= {28, 32}  # ints of one digit; from 3.15 on complex numbers as well
    return Explanation("recycled numbers", frozenset(sizes), recycled_numbers.__doc__, counted=False)


def iterators_of_futures():
    """Up to 3.13, the module _asyncio has a freelist of its own for what `await` takes from a future. Nobody can turn
    it off, so such an iterator has the traceback of the first one in its memory."""
    if sys.version_info >= (3, 14) or "asyncio" not in sys.modules:
        return None
    loop = sys.modules["asyncio"].new_event_loop()
    size = sys.getsizeof(iter(loop.create_future()))
    loop.close()
    return Explanation("iterators of futures", frozenset([size]), iterators_of_futures.__doc__)


def resurrection(sizes):
    """An object that its __del__ keeps alive is a new reference to the interpreter: the stdlib gives it the traceback
    of that moment, heapledger that of its allocation. `sizes`: of the objects that the program revives."""
    return Explanation("resurrection", frozenset(sizes), resurrection.__doc__) if sizes else None


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
        if explanation.counted:
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
