"""The test suites of real packages where heapledger is installed; in a short form. budgets.py has the long one."""

import budgets
import pytest
from environments import INSTALLED, Environment
from suites import SUITES, run

NAMES = ("attrs", "httpx", "more-itertools", "networkx")


@pytest.fixture(scope="module")
def enabled(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("enabled"))
    environment.command("enable")
    return environment.python


@pytest.mark.parametrize("name", NAMES)
def test_warnings_as_errors(name, enabled):
    """heapledger makes no warning: installed, asked for by the variable, and in place of tracemalloc."""
    in_place = {"python": enabled, "path": [INSTALLED]}
    for case in ({}, {"HEAPLEDGER": "25"}, in_place, {**in_place, "HEAPLEDGER": "1", "PYTHONTRACEMALLOC": "1"}):
        status, text = run(SUITES[name], "-W", "error", quick=True, **case)
        assert status == 0, text


def test_budgets_hold_and_a_leak_is_found(tmp_path):
    experiment = budgets.Experiment(SUITES["networkx"], tmp_path, quick=True)
    experiment.record()
    assert experiment.added > 100
    for number in range(len(budgets.MODES)):
        assert experiment.repeat(number) == {}
    assert experiment.plant()
