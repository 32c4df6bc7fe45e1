"""Completion in the real bash; the syntax of the other scripts where their shells are installed (tests/once)."""

import shutil
import subprocess

import pytest
import stored
from heapledger.command import SUMMARIES

ASK = """
heapledger() { :; }
COMP_LINE=$1
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_heapledger
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(fine):
    """complete(words...): what bash offers for the last word."""
    script = fine("completion", "bash")

    def complete(*words):
        line = ["bash", "--norc", "-euc", script + ASK, "bash", " ".join(words), *words]
        done = subprocess.run(line, cwd=stored.GOLDEN, capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == ""
        return sorted(done.stdout.split())

    return complete


def test_bash(complete):
    assert complete("heapledger", "") == sorted([*SUMMARIES, "-h", "--help", "--version"])
    assert complete("heapledger", "su") == ["summary"]
    assert complete("heapledger", "top", "--by", "") == ["file", "function", "line", "package", "traceback"]
    assert complete("heapledger", "top", "--by", "pa") == ["package"]
    assert complete("heapledger", "top", "--by", "=", "fu") == ["function"]
    assert complete("heapledger", "top", "--cu") == ["--cumulative"]
    assert complete("heapledger", "top", "old.hl") == ["old.hlsnap"]
    assert "new.hlsnap" in complete("heapledger", "diff", "old.hlsnap", "")
    assert complete("heapledger", "export", "--format", "p") == ["pprof"]
    assert complete("heapledger", "merge", "-o", "ol") == ["old.hlsnap"]
    assert complete("heapledger", "report", "-o", "ol") == ["old.hlsnap"]
    assert complete("heapledger", "run", "ol") == ["old.hlsnap"]
    assert complete("heapledger", "run", "-o", "ol") == ["old.hlsnap"]
    assert complete("heapledger", "--v") == ["--version"]
    assert complete("heapledger", "top", "--include", "") == []
    assert complete("heapledger", "completion", "z") == ["zsh"]
    assert complete("heapledger", "nonsense", "") == []


def test_bash_knows_whom_to_ask(fine):
    """The function is registered for the command, and the script can be read under `set -eu`."""
    script = fine("completion", "bash") + "\ncomplete -p heapledger"
    text = subprocess.check_output(["bash", "--norc", "-euc", script], text=True)
    assert text == "complete -F _heapledger heapledger\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(fine, tmp_path, shell):
    script = tmp_path / "script"
    script.write_text(fine("completion", shell), encoding="utf-8")
    for name in SUMMARIES:
        assert name in script.read_text(encoding="utf-8")
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n", script], check=True, timeout=60)
