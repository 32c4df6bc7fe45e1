"""A short selection of the real programs; `make real-programs` runs them all."""

import importlib.util
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("real_programs", HERE / "run.py")
real_programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real_programs)


def test_the_interpreters_own_tests(tmp_path):
    problem, _ = real_programs.compare_tests("json", tmp_path)
    assert problem is None


@pytest.mark.parametrize("name", ["pytest", "pip"])
def test_applications(tmp_path, name):
    program = real_programs.applications(tmp_path)[name]
    problem, _ = real_programs.compare_output(program, tmp_path)
    assert problem is None


def test_differences_are_noticed(tmp_path):
    (tmp_path / "work").mkdir()
    notices = "import os; print('HEAPLEDGER_RUN' in os.environ)"
    problem, written = real_programs.compare_output(["-c", notices], tmp_path)
    assert problem.startswith("stdout ['False'], traced ['True']")
    assert written == 1
