"""The interpreter's own tests as programs, both engines at once: the same traces at the end.

A few of them here; those marked slow are for `make soak`. How a test ends does not matter, as long as it runs.
"""

import both_engines
import pytest

LIMIT = 25
LEAST = 5_000  # traces; all of them have several times as many

# Quick with the standard library's tracer, which takes up to twenty times as long as ours on stacks as deep as these;
# and without sub-interpreters, with which it crashes (gh-144172).
FEW = ["test_contextlib", "test_yield_from"]
MANY = [
    "test_array", "test_asyncgen", "test_asyncio.test_tasks", "test_collections", "test_copy", "test_coroutines",
    "test_csv", "test_dataclasses", "test_dict", "test_enum", "test_exception_group", "test_exceptions",
    "test_fractions", "test_frame", "test_fstring", "test_functools", "test_generators", "test_genexps", "test_heapq",
    "test_iter", "test_json.test_decode", "test_json.test_dump", "test_list", "test_listcomps", "test_memoryview",
    "test_named_expressions", "test_ordered_dict", "test_patma", "test_re", "test_scope", "test_sys_setprofile",
    "test_threading_local", "test_traceback", "test_typing", "test_userdict", "test_with", "test_xml_etree",
]  # fmt: skip

PROGRAM = """
import contextlib
import io
import sys
import unittest


def main():
    unittest.TestSuite._cleanup = False  # tests stay, with what they hold
    suite = unittest.defaultTestLoader.loadTestsFromName("test.{module}")
    with contextlib.redirect_stdout(sys.stderr):
        result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    assert result.testsRun > 0, result
    return suite, result
"""


def check(module, folder):
    program = folder / "program.py"
    program.write_text(PROGRAM.format(module=module), encoding="utf-8")
    both_engines.check(both_engines.run(program, [LIMIT], folder, timeout=600), LEAST)


@pytest.mark.parametrize("module", FEW)
def test_traces_agree(module, tmp_path):
    check(module, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("module", MANY)
def test_more(module, tmp_path):
    check(module, tmp_path)
