"""Random programs, both engines at once: the same traces. generator.py SEED prints the program of a failure."""

import both_engines
import generator
import pytest

SEEDS = range(36)
MORE_SEEDS = range(1000, 1300)


def check(seed, limits, folder):
    program = folder / f"program_{seed}.py"
    program.write_text(generator.write(seed), encoding="utf-8")
    both_engines.check(both_engines.run(program, limits, folder), least=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_agree(seed, tmp_path):
    check(seed, [1, 5, 25], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_more(seed, tmp_path):
    check(seed, [1, 5, 25], tmp_path)


def test_generator_repeats_itself():
    assert generator.write(7) == generator.write(7) != generator.write(8)
