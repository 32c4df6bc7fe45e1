"""The test suites of real packages: fetched at pinned versions, and run in processes of their own.

Packages are in build/suites-X.Y.Z, and the source distributions, which have the tests, in build/suite-sources.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
REQUIREMENTS = HERE / "requirements-suites.txt"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
TIMEOUT = 1800


class Suite:
    """`tests`: arguments for pytest; `quick`: for a few seconds' worth of them; `leak`: what suite_plugin plants."""

    def __init__(self, name, tests, quick, leak, *, source=True):
        self.name = name
        self.tests = tests
        self.quick = quick
        self.leak = leak
        self._has_source = source

    def folder(self):
        """Where the tests are run."""
        if not self._has_source:
            return BUILD
        version = re.search(rf"^{self.name}==(\S+)$", REQUIREMENTS.read_text(), re.MULTILINE)[1]
        base = BUILD / "suite-sources"
        folder = base / f"{self.name.replace('-', '_')}-{version}"
        if not folder.exists():
            wanted = f"{self.name}=={version}"
            command = [*PIP, "download", "--no-deps", "--no-binary", self.name, "--dest", base, wanted]
            subprocess.run(command, check=True, timeout=TIMEOUT)
            with tarfile.open(f"{folder}.tar.gz") as archive:
                archive.extractall(base, filter="data")
        return folder


SUITES = {
    suite.name: suite
    for suite in (
        Suite("attrs", ["tests"], ["tests/test_slots.py"], "attr._make:_ClassBuilder._add_method_dunders_unsafe"),
        Suite("httpx", ["tests"], ["tests/models"], "httpx._models:_normalize_header_key"),
        Suite("more-itertools", ["tests"], ["tests/test_recipes.py"], "more_itertools.more:peekable.__next__"),
        Suite(
            "networkx",
            ["-c", os.devnull, "--pyargs", "networkx.classes"],
            ["-c", os.devnull, "--pyargs", "networkx.classes.tests.test_graph", "networkx.classes.tests.test_digraph"],
            "networkx.classes.coreviews:AtlasView.__getitem__",
            source=False,
        ),
    )
}


def packages():
    """The folder with the packages; made if need be."""
    folder = BUILD / f"suites-{platform.python_version()}"
    complete = folder / "complete"
    if not complete.exists() or complete.read_bytes() != REQUIREMENTS.read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        command = [*PIP, "install", "--no-deps", "--target", folder, "-r", REQUIREMENTS]
        subprocess.run(command, check=True, timeout=TIMEOUT)
        shutil.copy(REQUIREMENTS, complete)
    return folder


def run(suite, *options, quick=False, python=sys.executable, path=(), others=(), **variables):
    """Run the suite's tests: (exit status, text). `others`: plugins of pytest that take part."""
    without = [part for name in ("asyncio", "memray", "cacheprovider", "xdist") if name not in others
               for part in ("-p", f"no:{name}")]  # fmt: skip
    environment = {**os.environ, **variables}
    environment.pop("PYTEST_ADDOPTS", None)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (packages(), HERE, *path)))
    command = [python, "-m", "pytest", "-q", "--tb=short", "-rf", "-p", "suite_plugin", *without, *options]
    done = subprocess.run(
        [*command, *(suite.quick if quick else suite.tests)],
        cwd=suite.folder(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    return done.returncode, done.stdout + done.stderr
