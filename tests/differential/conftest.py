"""The marker of long tests: they run when HEAPLEDGER_SLOW is set in the environment."""

import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; runs when HEAPLEDGER_SLOW is set")


def pytest_collection_modifyitems(items):
    if os.environ.get("HEAPLEDGER_SLOW"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; set HEAPLEDGER_SLOW to run it"))
