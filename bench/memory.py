"""Resident memory per live block above untraced, what stays after everything was freed, and whether churn adds to it.

Blocks come from PyMem_Malloc by way of noop.c, so sizes are exact and there are no Python objects among them. The
figures compare whole processes: import and start of the tracer are in them.
"""

import harness
import report

SIZES = (8, 60, 150, 450, 2000)
MODES = ("untraced", "heapledger-1", "stdlib-1")
MEM_DOMAIN = 1
CHURN_BLOCKS = 200_000
CHURN_ROUNDS = 10
CHURN_STEPS = 1_000_000
CHURN_LARGEST = 512


def measure(mode, count, size=None):
    """In the child: resident bytes with `count` blocks alive and after freeing them; or, without size, under churn."""
    import _noop

    _noop.reserve(count, MEM_DOMAIN)
    tracer = harness.MODES[mode].start()
    if size is None:
        _noop.fill(count, CHURN_LARGEST // 2)
        levels = []
        for _ in range(CHURN_ROUNDS):
            _noop.churn(CHURN_STEPS, CHURN_LARGEST)
            levels.append(harness.rss())
        answer = {"levels": levels}
    else:
        _noop.fill(count, size)
        full = harness.rss()
        own = tracer.get_tracemalloc_memory() if tracer is not None else 0
        _noop.release()
        answer = {"full": full, "own": own, "freed": harness.rss()}
    if tracer is not None:
        tracer.stop()
        answer["stopped"] = harness.rss()
    return answer


def available():
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def run(modes, count):
    """{size: (count, {mode: answer})} and {mode: levels under churn}."""
    cells = {}
    for size in SIZES:
        fits = count
        while fits * (size + 150) > available() * 0.8:
            fits //= 2
        cells[size] = fits, {mode: harness.measure("memory", mode=mode, count=fits, size=size) for mode in modes}
        harness.progress(f"memory: {size} bytes x {fits:,}")
    churn = {mode: harness.measure("memory", mode=mode, count=CHURN_BLOCKS)["levels"] for mode in modes}
    harness.progress("memory: churn")
    return cells, churn


def megabytes(value):
    return f"{value / 1e6:.1f}"


def render(measured):
    cells, churn = measured
    traced = [mode for mode in churn if mode != "untraced"]
    titles = [harness.MODES[mode].title for mode in traced]
    rows, freed = [], []
    for size, (count, answers) in cells.items():
        plain = answers["untraced"]
        rows.append(
            [f"{size:,} bytes x {count:,}", f"{plain['full'] / count:.0f}"]
            + [f"**{(answers[mode]['full'] - plain['full']) / count:.1f}**" for mode in traced]
            + [f"{answers[mode]['own'] / count:.1f}" for mode in traced]
        )
        freed.append(
            [f"{size:,} bytes x {count:,}"]
            + [megabytes(answers[mode]["full"] - plain["full"]) for mode in traced]
            + [megabytes(answers[mode]["freed"] - plain["freed"]) for mode in traced]
            + [megabytes(answers[mode]["stopped"] - plain["freed"]) for mode in traced]
        )
    head = [
        "live blocks",
        "untraced, RSS of the process a block",
        *(f"{title}: more RSS a block, bytes" for title in titles),
    ]
    head += [f"{title}: own figure a block" for title in titles]
    text = f"### Memory\n\n{report.table(head, rows)}"
    head = ["MB of RSS above untraced", *(f"{title}: at the peak" for title in titles)]
    head += [f"{title}: all blocks freed" for title in titles] + [f"{title}: after stop" for title in titles]
    text += f"\n\n{report.table(head, freed)}"
    shown = (0, CHURN_ROUNDS // 2 - 1, CHURN_ROUNDS - 1)
    rows = [
        [harness.MODES[mode].title, *(megabytes(churn[mode][i] - churn["untraced"][i]) for i in shown)]
        for mode in traced
    ]
    head = [f"MB of RSS above untraced, {CHURN_BLOCKS:,} live blocks of 1 to {CHURN_LARGEST} bytes"]
    head += [f"after {(i + 1) * CHURN_STEPS / 1e6:g} million replacements" for i in shown]
    return text + f"\n\n{report.table(head, rows)}"
