"""Start the harness in a child process and read its answer."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TIMEOUT = 120


def run(program, limits, folder, timeout=TIMEOUT):
    """The harness' answer: one dict per limit. `folder` is the child's working directory, away from the sources."""
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", str(HERE / "harness.py"), str(program)]
    command += [str(limit) for limit in limits]
    child = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    assert child.returncode == 0, f"{program} ended with {child.returncode}:\n{child.stderr[-3000:]}"
    return json.loads(child.stdout)


def check(answers, least):
    """No difference, and enough traces compared that there could have been one."""
    for answer in answers:
        limit, differences = answer["limit"], answer["differences"]
        if answer["numbers"]:  # the last round: what is made once only, is there
            least = min(least, 100)
        assert not differences, f"at {limit} frames:\n" + "\n".join(differences)
        assert answer["compared"] >= least, f"at {limit} frames only {answer['compared']} traces were compared"
        assert answer["in_program"] > 0, f"at {limit} frames no trace is from the program itself"
