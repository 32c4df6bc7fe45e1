"""Each stress program in a child with a time limit: for a second here, for minutes by `make soak`.

HEAPLEDGER_STRESS_SECONDS and HEAPLEDGER_STRESS_SEED say how long, and which choices. To run one by hand:

    tools/with-interpreter 3.11 python tests/stress/forks.py 10 1
"""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if "\ndef main():" in path.read_text(encoding="utf-8"))
SECONDS = float(os.environ.get("HEAPLEDGER_STRESS_SECONDS", "1"))
SEED = int(os.environ.get("HEAPLEDGER_STRESS_SEED", "1"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stress")


@pytest.mark.parametrize("program", PROGRAMS)
def test_stress(program, folder):
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", HERE / f"{program}.py", str(SECONDS), str(SEED)]
    environment = {**os.environ, "HEAPLEDGER_STRESS_FOLDER": str(folder)}
    try:
        child = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=2 * SECONDS + 90
        )
    except subprocess.TimeoutExpired as hang:
        pytest.fail(f"{program} hangs (seed {SEED}):\n{(hang.stderr or b'').decode()[-4000:]}")
    output = f"seed {SEED}: {child.stdout[-2000:]}\n{child.stderr[-6000:]}"
    assert child.returncode == 0, f"exit status {child.returncode}, {output}"
    assert "Fatal Python error" not in child.stderr, output
