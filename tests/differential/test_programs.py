"""The same programs, both engines at once: the same traces."""

import both_engines
import pytest

PROGRAMS = sorted((both_engines.HERE / "programs").glob("*.py"))
LEAST = 20  # traces of sizes that take part on every version


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_traces_agree(program, tmp_path):
    both_engines.check(both_engines.run(program, [1, 5, 25], tmp_path), LEAST)


@pytest.mark.parametrize("limit", [2, 3, 100])
def test_unusual_limits(limit, tmp_path):
    program = both_engines.HERE / "programs" / "deep_recursion.py"
    both_engines.check(both_engines.run(program, [limit], tmp_path), LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_many_rounds(program, tmp_path):
    both_engines.check(both_engines.run(program, [1, 25, 5, 7, 1, 50, 2], tmp_path), LEAST)
