"""Runs of pytest, each in a process of its own, in a folder with tests."""

import os
import subprocess
import sys

TIMEOUT = 120
OTHERS = ("asyncio", "xdist", "memray", "cacheprovider")  # plugins that are left out unless a test wants them


class Run:
    """What a run of pytest has said, and its exit status."""

    def __init__(self, folder, *options, plugins=(), seed=None, columns=200):
        without = [part for name in OTHERS if name not in plugins for part in ("-p", f"no:{name}")]
        variables = {**os.environ, "PYTHONHASHSEED": "random" if seed is None else str(seed), "COLUMNS": str(columns)}
        variables.pop("PYTEST_ADDOPTS", None)
        usual = ["-q", "--strict-markers", "-c", os.devnull, "--rootdir=."]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *usual, *without, *options],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        self.status = done.returncode
        self.text = done.stdout + done.stderr

    def has(self, *parts):
        missing = [part for part in parts if part not in self.text]
        assert not missing, f"{missing}\n{self.text}"
