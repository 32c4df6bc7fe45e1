"""Virtual environments with other people's packages and heapledger as it is in the checkout now.

They are build/bench-NAME-X.Y.Z, made by and for the interpreter of tools/with-interpreter, and kept; heapledger is
installed from a wheel, so that its start-up files are there too, and again when it has changed. Packages come as
wheels, at the versions of the lists beside this file.
"""

import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import harness

ROOT = harness.HERE.parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


class Environment:
    """An environment: its interpreter, its packages' folder, and which of the wanted packages are not there and why."""

    def __init__(self, name, wanted=None):
        """With the packages of requirements-NAME.txt; or those of `wanted` (names) there are wheels of."""
        self.constraints = harness.HERE / f"requirements-{name}.txt"
        self.folder = ROOT / "build" / f"bench-{name}-{platform.python_version()}"
        self.python = self.folder / "bin" / "python"
        complete = self.folder / "complete.json"
        known = json.loads(complete.read_text()) if complete.exists() else {}
        made_from = self.constraints.read_text()
        if known.get("made from") != made_from:
            self._make()
            known = {"made from": made_from, "missing": self._install_all(wanted)}
        self.missing = known["missing"]
        installed = pathlib.Path(sys.prefix, "installed").read_text()  # what tools/with-interpreter has built
        if known.get("installed") != installed:
            self._install_heapledger()
        complete.write_text(json.dumps({**known, "installed": installed}))
        where = "import sysconfig; print(sysconfig.get_path('platlib'))"
        self.packages = pathlib.Path(subprocess.check_output([self.python, "-I", "-c", where], text=True).strip())

    def _make(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([sys.executable, "-I", "-m", "venv", self.folder], check=True)

    def _install_all(self, wanted):
        """{package: why it is not there}"""
        if wanted is None:
            self.install("-r", self.constraints)
        missing = {}
        for package in wanted or ():
            try:
                self.install("-c", self.constraints, package)
            except subprocess.CalledProcessError:
                missing[package] = f"no wheel for CPython {platform.python_version()}"
        return missing

    def install(self, *arguments, wheels_only=True):
        wheels = ("--only-binary", ":all:") if wheels_only else ()
        subprocess.run([self.python, *PIP, "install", *wheels, *arguments], check=True)

    def _install_heapledger(self):
        built = f"--config-settings=build-dir=build/meson-{platform.python_version()}"
        with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
            options = ("--no-deps", "--no-build-isolation", built, "--wheel-dir", folder)
            subprocess.run([sys.executable, *PIP, "wheel", *options, "."], check=True, cwd=ROOT)
            (path,) = pathlib.Path(folder).glob("*.whl")
            self.install("--no-deps", "--force-reinstall", path)

    def versions(self, packages):
        """{package: version} of those that are there."""
        listed = subprocess.check_output([self.python, "-m", "pip", "list", "--format=freeze"], text=True)
        found = {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==(\S+)$", listed, re.MULTILINE)}
        return {package: found[package.lower()] for package in packages if package.lower() in found}
