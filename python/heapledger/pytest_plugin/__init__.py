"""The pytest plugin: how much memory tests need, and what they leave behind.

pytest loads python/startup/_heapledger_pytest.py, which loads this package when an option or a marker needs it.

The plugin measures only the call of the test function, in a trace of its own. Fixtures and pytest itself do not count.
Garbage is collected before and after. Workers of pytest-xdist measure and compare. Reports carry the numbers to the
controller, which lists them and writes the baseline.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import unittest

import pytest
from heapledger.command._text import plural
from heapledger.command._text import size as format_size
from heapledger.pytest_plugin._baseline import NUMBERS, Baseline
from heapledger.pytest_plugin._doctests import compiled_unseen
from heapledger.pytest_plugin._lines import excess, table
from heapledger.pytest_plugin._markers import read_limit_leaks, read_limit_memory
from heapledger.pytest_plugin._measure import Ask, Doubts, Measurement, measure, measure_async
from heapledger.pytest_plugin._ranks import Ranks
from heapledger.pytest_plugin._repeats import run, runs_of
from heapledger.pytest_plugin._threads import WHOLE_STACKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Any, TypeGuard

    from heapledger import Statistic, StatisticDiff
    from heapledger.pytest_plugin._markers import Leaks, Memory

    _Offence = tuple[str, Sequence[Statistic | StatisticDiff]]


class Plugin:
    """Registered by `load` in _heapledger_pytest.py. `left`: markers that another plugin handles, or ()."""

    def __init__(self, config: pytest.Config, left: Sequence[str]) -> None:
        option = config.option
        self._config = config
        self._left = left
        self._all = option.heapledger or option.heapledger_baseline
        self._top = option.heapledger_top
        self._nframe = option.heapledger_nframe
        self._warmup = option.heapledger_warmup
        self._is_worker = hasattr(config, "workerinput")
        self._ranks = Ranks(self._top if option.heapledger else 0)
        self._results: dict[str, dict[str, int]] = {}  # nodeid -> numbers, in the order of the reports
        self._baseline: Baseline | None = None
        if option.heapledger_baseline:
            path = config.invocation_params.dir / option.heapledger_baseline
            self._baseline = Baseline(path, option.heapledger_tolerance, option.heapledger_update)

    # Measuring

    def _rules(self, item: pytest.Item) -> tuple[Memory | None, Leaks | None]:
        """The limits in the test's markers: (Memory or None, Leaks or None)."""
        if self._left:
            return None, None
        return read_limit_memory(item), read_limit_leaks(item)

    def _ask(self, item: pytest.Item, memory: Memory | None, leaks: Leaks | None) -> Ask:
        rules = [rule for rule in (memory, leaks) if rule is not None]
        whole_stacks = any(rule.needs_whole_stacks for rule in rules)
        return Ask(
            WHOLE_STACKS if whole_stacks else self._nframe,
            self._doubts(item, leaks),
            warmup=self._warmup if leaks is None else max(leaks.warmup, self._warmup),
            rounds=1 if leaks is None else leaks.rounds,
            own_thread=self._baseline is not None or any(rule.current_thread_only for rule in rules),
        )

    def _doubts(self, item: pytest.Item, leaks: Leaks | None) -> Doubts:
        """Examine closely what seems to be left behind if a verdict depends on it, or if it will be listed."""
        doubts = [self._ranks.doubts()]
        if leaks is not None:
            doubts.append(Doubts(leaks.size))
        runs = runs_of(item)
        if self._baseline is not None and runs is not None:
            doubts.append(Doubts(self._baseline.doubtful(item.nodeid, runs)))
        return functools.reduce(Doubts.or_else, doubts)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if self._baseline is None or chooses_its_data(item):
            return None
        return run(item, nextitem, 1 + self._config.option.heapledger_repeats)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        if any(pyfuncitem.get_closest_marker(name) for name in self._left):
            return (yield)  # memray would count the memory and the address space that we use
        memory, leaks = self._rules(pyfuncitem)
        if memory is None and leaks is None and not self._all:
            return (yield)
        measurement = Measurement(self._ask(pyfuncitem, memory, leaks))
        with _function_measured(pyfuncitem, measurement):
            result = yield
        self._judge(pyfuncitem, measurement, memory, leaks)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Tests that pytest does not call itself: unittest's and doctests."""
        plain = isinstance(item, pytest.Function) and type(item).__name__ != "TestCaseFunction"
        if plain:
            return (yield)
        memory, leaks = self._rules(item)
        if leaks is not None:
            pytest.fail("limit_leaks needs a test function, which can be called several times", pytrace=False)
        if memory is None and not self._all:
            return (yield)
        measurement = Measurement(self._ask(item, memory, None))
        with _function_measured(item, measurement) if _is_method(item) else _run_measured(measurement):
            result = yield
        if measurement.has_begun():  # a method is not called if it is skipped, or if its set-up fails
            self._judge(item, measurement, memory, None)
        return result

    # Judging

    def _judge(self, item: pytest.Item, measurement: Measurement, memory: Memory | None, leaks: Leaks | None) -> None:
        runs = runs_of(item)
        if not measurement.is_known():
            if memory is not None or leaks is not None or runs is not None:
                pytest.fail("the test's memory is unknown because the test stopped the tracer", pytrace=False)
            return
        numbers = measurement.numbers(own=False)
        item.stash[NUMBERS_OF_ITEM] = numbers
        self._ranks.add(numbers)
        offences: list[_Offence] = []
        if memory is not None:
            offences += _memory_offences(measurement, memory)
        if leaks is not None:
            offences += _leaks_offences(measurement, leaks)
        if self._baseline is not None and runs is not None and not offences:
            runs.add(measurement)
            offences = self._baseline.offences(item.nodeid, runs, measurement)
        if offences:
            pytest.fail("\n\n".join(self._explain(item, *offence) for offence in offences), pytrace=False)

    def _explain(self, item: pytest.Item, sentence: str, statistics: Sequence[Statistic | StatisticDiff]) -> str:
        rows = table(excess(statistics, item.path), self._top, self._config.invocation_params.dir)
        return f"heapledger: {sentence}\n{rows}"

    # Reporting

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        numbers = item.stash.get(NUMBERS_OF_ITEM, None)
        if report.when == "call" and numbers is not None:
            vars(report)["heapledger"] = numbers  # a plain dict, which pytest-xdist carries to the controller
            del item.stash[NUMBERS_OF_ITEM]  # in the next run, reports of subtests come first
            runs = runs_of(item)
            if runs is not None:
                vars(report)["heapledger_runs"] = runs.as_dict()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        numbers = getattr(report, "heapledger", None)
        if numbers is None:
            return
        self._results[report.nodeid] = numbers
        runs = getattr(report, "heapledger_runs", None)
        if self._baseline is not None and runs is not None:
            self._baseline.note(report.nodeid, runs, report.passed)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._baseline is None or self._is_worker or self._baseline.write():
            return
        if session.exitstatus == pytest.ExitCode.OK:  # half of the work is not done
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._all or not self._results:
            return
        terminalreporter.section("heapledger")
        if self._config.option.heapledger:
            self._list(terminalreporter, "the largest peaks above the start of the test", "peak")
            self._list(terminalreporter, "what tests have left behind", "leaked")
        if self._baseline is not None:
            for text in self._baseline.summary():
                terminalreporter.line(text)

    def _list(self, reporter: pytest.TerminalReporter, title: str, by: str) -> None:
        ranked = sorted(self._results.items(), key=lambda result: (-result[1][by], result[0]))
        ranked = [result for result in ranked[: self._top] if result[1][by] > 0]
        reporter.line(f"{title}:" if ranked else f"{title}: nothing")
        if ranked:
            reporter.line(f"{'peak':>12} {'allocated':>12} {'blocks':>10} {'left behind':>12} {'blocks':>8}  test")
        for name, numbers in ranked:
            reporter.line(
                f"{format_size(numbers['peak']):>12} {format_size(numbers['allocated']):>12}"
                f" {numbers['blocks']:>10} {format_size(numbers['leaked']):>12} {numbers['leaked_blocks']:>8}  {name}"
            )


NUMBERS_OF_ITEM = pytest.StashKey[dict[str, int]]()


@contextlib.contextmanager
def _function_measured(item: pytest.Function, measurement: Measurement) -> Iterator[None]:
    """In the block, the test function is replaced by one that measures it."""
    function = item.obj
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def measured(*args: Any, **kwargs: Any) -> Any:
            return await measure_async(measurement, function, args, kwargs)

    else:

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            return measure(measurement, function, args, kwargs)

    item.obj = measured
    try:
        yield
    finally:
        item.obj = function


@contextlib.contextmanager
def _run_measured(measurement: Measurement) -> Iterator[None]:
    """Measure the test together with the code that runs it."""
    with compiled_unseen():
        measurement.begin()
        try:
            yield
        finally:
            measurement.end()


def _is_method(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether it is a test of unittest that ends when its method returns. Tests with an event loop do not."""
    return getattr(type(getattr(item, "instance", None)), "run", None) is unittest.TestCase.run


def chooses_its_data(item: pytest.Item) -> bool:
    """Tests of hypothesis choose other data in each run, so they have no budget."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def _memory_offences(measurement: Measurement, memory: Memory) -> list[_Offence]:
    peak = measurement.numbers(memory.current_thread_only)["peak"]
    if peak <= memory.size:
        return []
    sentence = f"peak {format_size(peak)} above the start, {format_size(memory.size)} allowed"
    return [(sentence, measurement.growth_at_peak(memory.current_thread_only))]


def _leaks_offences(measurement: Measurement, leaks: Leaks) -> list[_Offence]:
    """Only what every round leaves behind is a leak. A cache that grows now and then is not."""
    left = [leaks.select(statistics) for statistics in measurement.leaked(leaks.current_thread_only, leaks.filters)]
    sizes = [sum(statistic.size for statistic in statistics) for statistics in left]
    least = min(sizes)
    if least <= leaks.size:
        return []
    statistics = left[sizes.index(least)]
    blocks = plural(sum(statistic.count for statistic in statistics), "block")
    sentence = f"{format_size(least)} in {blocks} left behind by each call, {format_size(leaks.size)} allowed"
    return [(sentence, statistics)]


__all__ = ["NUMBERS", "Plugin"]
