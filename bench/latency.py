"""How long one call of the allocator takes while other threads call it too.

Threads that hold the GIL in turn, threads that call the raw allocator without it, and one with the GIL beside such
threads. Each call is timed in C. High percentiles show the scheduler, and who waits for whom: so compare each with the
untraced one of the same turn.
"""

import array
import os
import statistics
import threading

import harness
import report
import workloads

MODES = ("untraced", "heapledger-1", "heapledger-25")
RAW, OBJECT = 0, 2
CALLS = 1_000_000  # of each thread: half of them allocate, half of them free
BATCHES = {OBJECT: 1_000, RAW: 100_000}  # calls in a row; after those a thread may lose the GIL, or must wait for it
PERCENTILES = (50, 99, 99.9, 99.99)
KINDS = {
    "with the GIL": ([1, 2, 4], lambda number: OBJECT),
    "raw, without the GIL": ([1, 2, 4], lambda number: RAW),
    "threads, one with the GIL, which is timed, the others raw": ([2, 4], lambda number: RAW if number else OBJECT),
}


def work(domain, times):
    import _noop

    batch = BATCHES[domain]
    for _ in range(CALLS // batch):
        times.append(_noop.timed(domain, batch // 2, domain == OBJECT))


def measure(mode, kind, threads):
    """In the child: nanoseconds at the percentiles, over the calls of the threads that this kind is about."""
    os.sched_setaffinity(0, range(os.cpu_count()))  # threads on one processor would not meet
    tracer = harness.MODES[mode].start()
    domain_of = KINDS[kind][1]
    times = [[] for _ in range(threads)]
    started = threading.Barrier(threads)

    def run(number):
        started.wait()
        workloads.deep(workloads.DEPTH, lambda: work(domain_of(number), times[number]))

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if tracer is not None:
        tracer.stop()
    counted = array.array("I")
    for number in range(threads):
        if domain_of(number) == domain_of(0):
            counted.frombytes(b"".join(times[number]))
    counted = sorted(counted)
    return {str(percent): counted[int(len(counted) * percent / 100)] for percent in PERCENTILES}


def run(modes, repeats):
    """{(kind, threads): {mode: {percentile: the median over the repeats}}}, the modes taking turns."""
    found = {}
    for kind, (numbers, _) in KINDS.items():
        for threads in numbers:
            answers = {mode: [] for mode in modes}
            for _ in range(repeats):
                for mode in modes:
                    answers[mode].append(harness.measure("latency", mode=mode, kind=kind, threads=threads))
            found[kind, threads] = {
                mode: {key: statistics.median(answer[key] for answer in given) for key in given[0]}
                for mode, given in answers.items()
            }
            harness.progress(f"latency: {kind}, {threads}")
    return found


def render(found, repeats):
    head = ["threads", "", *(f"{percent} %" for percent in PERCENTILES)]
    rows = [
        [f"{threads} {kind}", harness.MODES[mode].title, *(f"{value / 1e3:,.2f}" for value in figures.values())]
        for (kind, threads), modes in found.items()
        for mode, figures in modes.items()
    ]
    return (
        "### Latency with several threads\n\n"
        f"Microseconds of one call that allocates or frees 16 to 512 bytes, at percentiles of {CALLS:,} calls of each "
        f"thread below {workloads.DEPTH} frames; medians of {repeats} turns, the modes taking turns. The clock itself "
        "takes about 0.02. With more threads than processors, the last columns show the scheduler's time slices.\n\n"
    ) + report.table(head, rows)
