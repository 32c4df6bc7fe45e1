"""The module that pytest imports at each start if heapledger is installed: options, markers, and nothing else.

This module is not part of the package, because importing anything of the package loads all of it. A test run without
heapledger should not pay for that. The plugin itself is heapledger.pytest_plugin.
"""

from __future__ import annotations

import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _Number = TypeVar("_Number", int, float)

MARKERS = ("limit_memory", "limit_leaks")
OTHER = "memray_manager"  # what pytest-memray registers when it is configured
MARKERS_OF_OTHER = (*MARKERS, "limit_leaked_objects")


def _number(kind: type[_Number], least: float, most: float, wanted: str) -> Callable[[str], _Number]:
    """Like heapledger.command._arguments.number, which is imported only if such an option is given."""

    def read(text: str) -> _Number:
        from heapledger.command import _arguments

        return _arguments.number(kind, least, most, wanted)(text)

    return read


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("heapledger", "memory of tests, by heapledger")
    group.addoption("--heapledger", action="store_true", help="measure all tests; list the largest ones at the end")
    group.addoption(
        "--heapledger-top",
        type=_number(int, 1, sys.maxsize, "a whole number of at least 1"),
        default=10,
        metavar="N",
        help="how many tests, and lines of a test, to list (10)",
    )
    group.addoption(
        "--heapledger-nframe",
        type=_number(int, 1, 65535, "a whole number from 1 to 65535"),
        default=10,
        metavar="N",
        help="frames of each traceback to keep (10)",
    )
    group.addoption(
        "--heapledger-warmup",
        type=_number(int, 0, sys.maxsize, "a whole number of at least 0"),
        default=0,
        metavar="N",
        help="call each test function N times before it is measured (0)",
    )
    group.addoption(
        "--heapledger-baseline",
        metavar="FILE",
        help="fail tests that need more than FILE says; tests that are not there yet are added",
    )
    group.addoption(
        "--heapledger-repeats",
        type=_number(int, 0, sys.maxsize, "a whole number of at least 0"),
        default=5,
        metavar="N",
        help="run a test that exceeds its baseline up to N times more, and a new test twice more (5)",
    )
    group.addoption("--heapledger-update", action="store_true", help="write the new measurements into the baseline")
    group.addoption(
        "--heapledger-tolerance",
        type=_number(float, 0, sys.float_info.max, "a percentage of at least 0"),
        metavar="PERCENT",
        help="by how much a test may exceed its baseline (5 plus a small amount; 0 for blocks left behind)",
    )


@pytest.hookimpl(trylast=True)  # after pytest-memray
def pytest_configure(config: pytest.Config) -> None:
    for text in (
        "limit_memory(size, *, current_thread_only=False): "
        "fail the test if its peak is more than this size above its start, e.g. '24 MB'",
        "limit_leaks(size, *, filter=None, filter_fn=None, current_thread_only=False, warmup=2, rounds=3): "
        "fail the test if each call leaves more than this size behind",
    ):
        config.addinivalue_line("markers", text)
    if config.option.heapledger_update and not config.option.heapledger_baseline:
        raise pytest.UsageError("--heapledger-update needs --heapledger-baseline FILE")
    if config.option.heapledger or config.option.heapledger_baseline:
        if config.pluginmanager.hasplugin(OTHER) and config.option.memray:
            raise pytest.UsageError(
                "--memray measures every test, and only one plugin can measure a test: "
                "leave out --memray, or --heapledger and --heapledger-baseline"
            )
        load(config)


def load(config: pytest.Config) -> None:
    """Import and register the plugin itself, once."""
    if config.pluginmanager.hasplugin("heapledger-plugin"):
        return
    from heapledger.pytest_plugin import Plugin

    left = MARKERS_OF_OTHER if config.pluginmanager.hasplugin(OTHER) else ()
    config.pluginmanager.register(Plugin(config, left), "heapledger-plugin")


def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    beside_other = config.pluginmanager.hasplugin(OTHER)
    is_measuring = config.pluginmanager.hasplugin("heapledger-plugin")
    names = MARKERS_OF_OTHER if beside_other and is_measuring else MARKERS
    if not any(item.get_closest_marker(name) for item in session.items for name in names):
        return
    if not beside_other:
        load(config)
        return
    config.issue_config_time_warning(
        pytest.PytestWarning(
            f"tests with the markers {', '.join(names)} are left to pytest-memray, which is active too: "
            "heapledger does not measure them; use -p no:memray to let it"
        ),
        stacklevel=2,
    )
