"""The commands are quick on big snapshots. bench/commands.py measures them; this notices what got much slower."""

import pathlib
import resource
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
STACKS = 20_000
SECONDS = 0.3  # what a snapshot of five times as many stacks may take
TRIES = 3


def processor_time(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    for seed in ("1", "2"):
        command = [sys.executable, BENCH / "big_snapshot.py", folder / seed, "--stacks", str(STACKS), "--seed", seed]
        subprocess.run(command, check=True)
    return folder / "1", folder / "2"


def test_top_and_diff(files):
    old, new = map(str, files)
    start = min(processor_time("-c", "pass") for _ in range(TRIES))
    for arguments in (["top", new], ["top", new, "--by", "function", "--cumulative"], ["diff", old, new]):
        for _ in range(TRIES):
            taken = processor_time("-m", "heapledger", *arguments) - start
            if taken < SECONDS:
                break
        assert taken < SECONDS, arguments
