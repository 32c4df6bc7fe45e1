"""Turns of a mode, each between two untraced ones, and what comes of them: medians of ratios.

The speed of a shared machine changes by the minute, so a sample is compared with the mean of the untraced samples right
before and after it, and of these ratios the median counts. A sample is a dict of numbers; whatever is in both the
sample and the untraced ones around it, and above zero, gets a ratio.

Samples are kept in a JSON file, so that one table can be made of several short runs.
"""

import json
import pathlib
import statistics

import harness

UNTRACED = "untraced"


def ratios(sample, before, after):
    return {
        name: 2 * value / (before[name] + after[name])
        for name, value in sample.items()
        if before.get(name) and after.get(name)
    }


def take(modes, turns, measure, longest=None):
    """{mode: [sample, ...]}, the traced ones with their "ratios"; `measure(mode)` makes a sample.

    Each mode of `modes` has as many turns as `turns(mode)` says; one whose "wall" was above `longest` seconds has no
    more.
    """
    taken = {mode: [] for mode in (UNTRACED, *modes)}
    before = measure(UNTRACED)
    taken[UNTRACED].append(before)
    for turn in range(max(map(turns, modes))):
        for mode in modes:
            if turn >= turns(mode) or (turn and longest is not None and taken[mode][0]["wall"] > longest):
                continue
            sample = measure(mode)
            after = measure(UNTRACED)
            taken[mode].append({**sample, "ratios": ratios(sample, before, after)})
            taken[UNTRACED].append(after)
            before = after
    return taken


def median(samples, name):
    """The median of the samples' own values, or None."""
    values = [sample[name] for sample in samples if name in sample]
    return statistics.median(values) if values else None


def ratio(samples, name):
    """The median of the samples' ratios, or None."""
    values = [sample["ratios"][name] for sample in samples if name in sample["ratios"]]
    return statistics.median(values) if values else None


def mean(programs, mode, name):
    """The geometric mean of one mode's ratios over {program: {mode: samples}}, or None if one has none."""
    each = [ratio(taken.get(mode, ()), name) for taken in programs.values()]
    return harness.geomean(each) if each and None not in each else None


def ratio_beyond(samples, untraced, start_samples, start_untraced, name):
    """The ratio of what is left when start and end, measured by themselves, are taken from both sides; or None."""
    whole, start = ratio(samples, name), ratio(start_samples, name)
    if whole is None or start is None:
        return None
    whole_untraced, start_untraced = median(untraced, name), median(start_untraced, name)
    return (whole * whole_untraced - start * start_untraced) / (whole_untraced - start_untraced)


def counts(programs, mode):
    """How many turns a mode had: "3", or "1 to 3"."""
    each = [len(taken[mode]) for taken in programs.values() if mode in taken]
    return str(min(each)) if min(each) == max(each) else f"{min(each)} to {max(each)}"


def shown(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


class Store:
    """{program: {mode: samples}} in a file, in the order of `names`; modes that are not measured again are kept."""

    def __init__(self, path, names, keep):
        self.path = pathlib.Path(path)
        self.names = names
        self.programs = json.loads(self.path.read_text()) if keep and self.path.exists() else {}

    def put(self, name, taken):
        self.programs[name] = {**self.programs.get(name, {}), **taken}
        self.programs = {known: self.programs[known] for known in self.names if known in self.programs}
        self.path.write_text(json.dumps(self.programs))
