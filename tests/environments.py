"""A virtual environment of its own with the installed heapledger in it, for tests that change an environment."""

import pathlib
import shutil
import subprocess
import sys

import heapledger

INSTALLED = pathlib.Path(heapledger.__file__).parent.parent
TIMEOUT = 60
# Where children run: python -c looks for modules in the current folder first, and the checkout has a heapledger.
ELSEWHERE = "/"


class Environment:
    """An environment below a folder: its interpreter, and its site-packages folder."""

    def __init__(self, folder):
        subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", folder], check=True, timeout=TIMEOUT)
        self.python = str(pathlib.Path(folder, "bin", "python"))
        where = "import sysconfig; print(sysconfig.get_path('platlib'))"
        self.site_packages = pathlib.Path(subprocess.check_output([self.python, "-I", "-c", where], text=True).strip())
        shutil.copytree(INSTALLED / "heapledger", self.site_packages / "heapledger")
        for name in ("heapledger.pth", "_heapledger_start.py"):
            shutil.copy2(INSTALLED / name, self.site_packages)
        # As pip does, so that what is run later leaves no new files.
        command = [self.python, "-I", "-m", "compileall", "-q", self.site_packages]
        subprocess.run(command, check=True, timeout=TIMEOUT)

    def command(self, *arguments, expect=0):
        """Run the command heapledger; what it wrote to stdout and stderr."""
        done = subprocess.run(
            [self.python, "-I", "-m", "heapledger", *arguments], capture_output=True, text=True, timeout=TIMEOUT
        )
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr
