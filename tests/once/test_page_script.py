"""The report's script as it is in the page, all files joined, has nothing that a linter finds fault with."""

import os
import pathlib
import subprocess

from heapledger.report import _page

PACKAGES = pathlib.Path(os.environ["HEAPLEDGER_PACKAGES"])


def lint(checkout, script):
    command = [PACKAGES / "bin" / "oxlint", "--config", checkout / "tools" / "oxlint.json", "--deny-warnings", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_script(checkout, tmp_path):
    script = tmp_path / "page.js"
    script.write_text(_page.script(), encoding="utf-8")
    done = lint(checkout, script)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes_are_found(checkout, tmp_path):
    """A name that is in no file, and one that nobody uses."""
    script = tmp_path / "page.js"
    script.write_text(_page.script() + "(() => { const unused = undeclared; })();\n", encoding="utf-8")
    done = lint(checkout, script)
    assert done.returncode != 0 and "no-undef" in done.stdout and "no-unused-vars" in done.stdout
