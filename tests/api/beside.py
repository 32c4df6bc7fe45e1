"""Run a script in a child beside another tool, where random_stacks compares tracebacks with walks by sys._getframe."""

import importlib.util
import pathlib
import textwrap

import pytest
from children import run

HERE = pathlib.Path(__file__).parent
LIMITS = [1, 12]

PRELUDE = """
import sys
sys.path[1:1] = sys.argv[1:3]
import heapledger, random_stacks
limit = int(sys.argv[3])

def consistent():
    assert heapledger._validate() is None, heapledger._validate()
    assert heapledger.lost_records() == 0
"""


def beside(source, *arguments, folder="", limit=12, checked=True, **environment):
    """`checked`: in the end nothing is lost and the ledger is whole."""
    source = PRELUDE + textwrap.dedent(source) + ("\nconsistent()\n" if checked else "")
    return run(source, HERE, folder, limit, *arguments, environment=environment, timeout=120)


def needs(module):
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed: there is no wheel for this interpreter")
