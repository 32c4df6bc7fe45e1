"""A plugin for the test suites of real packages: runs some of the tests only, and plants a leak.

HEAPLEDGER_PICK     a number: a quarter of the tests, another one for each number, in another order
HEAPLEDGER_PLANT    module:Class.method, or module:function of the module: every call keeps an object

httpx's tests have a server at port 8000, so each worker of pytest-xdist gets a port of its own.
"""

import functools
import importlib
import os
import random
import sys

kept = []
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])


def pytest_collection_modifyitems(items):
    if number := os.environ.get("HEAPLEDGER_PICK"):
        items[:] = random.Random(int(number)).sample(items, len(items) // 4)
        items.sort(key=lambda item: item.path)  # fixtures of a module are made once
    if WORKER and "uvicorn" in sys.modules:
        config = sys.modules["uvicorn"].Config
        config.__init__ = functools.partialmethod(config.__init__, port=8000 + WORKER)


def keeping(function):
    @functools.wraps(function)
    def planted(*args, **kwargs):
        kept.append(object())
        return function(*args, **kwargs)

    return planted


if planted := os.environ.get("HEAPLEDGER_PLANT"):
    module, _, name = planted.partition(":")
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    setattr(owner, last, keeping(getattr(owner, last)))
