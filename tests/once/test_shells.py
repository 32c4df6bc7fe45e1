"""Completion in the real zsh and fish (tools/shells), as somebody who types in them gets it. bash: tests/command."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest
from heapledger import command

SECONDS = 60


def need(shell):
    if shutil.which(shell) is None:
        if os.environ.get("CI", "false") == "true":
            pytest.fail(f"CI needs {shell}")
        pytest.skip(f"there is no {shell} here; tools/shells installs it")


@pytest.fixture
def folder(tmp_path):
    for name in ("old.hlsnap", "new file.hlsnap"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def script_for(shell, path, capsys):
    assert command.main(["completion", shell]) == 0
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    subprocess.run([shell, "-n", path], check=True, timeout=SECONDS)


# What is typed after `heapledger ` up to the tabulator, and what the command then gets.
TYPED = {
    "su": "summary",
    "top --by pa": "top --by package",
    "top --by=fun": "top --by=function",
    "top --cum": "top --cumulative",
    "top ol": "top old.hlsnap",
    "diff old.hlsnap ne": "diff old.hlsnap new file.hlsnap",
    "export --format sp": "export --format speedscope",
    "merge old.hlsnap -o ne": "merge old.hlsnap -o new file.hlsnap",
    "completion fi": "completion fish",
    "report old.hlsnap -o ne": "report old.hlsnap -o new file.hlsnap",
    "run ol": "run old.hlsnap",
    "--ver": "--version",
}


# --- zsh ---


class Terminal:
    """A shell that somebody sits at."""

    def __init__(self, line, environment, folder):
        pid, self.descriptor = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe(line[0], line, environment)
        self.pid = pid
        self.text = ""

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def wait_for(self, what):
        """What is shown up to `what`, which is then forgotten."""
        until = time.monotonic() + SECONDS
        while what not in self.text:
            ready, _, _ = select.select([self.descriptor], [], [], max(until - time.monotonic(), 0))
            assert ready, f"waited for {what!r}, there is {self.text!r}"
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        before, _, self.text = self.text.partition(what)
        return before

    def close(self):
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


@pytest.fixture
def zsh(folder, capsys):
    """A zsh with the script in a folder of $fpath, as the help of completion says."""
    need("zsh")
    functions = folder / "functions"
    functions.mkdir()
    script_for("zsh", functions / "_heapledger", capsys)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}
    terminal = Terminal(["zsh", "-f", "-i"], environment, folder)
    terminal.type(
        f"unsetopt zle_bracketed_paste; PS1='%%'; fpath=({functions} $fpath); autoload -U compinit; compinit -D; "
        "heapledger() { print -r -- 'got' \"[$*]\" }; print rea''dy\n"
    )
    terminal.wait_for("ready")
    yield terminal
    terminal.close()


def test_zsh(zsh):
    for typed, wanted in TYPED.items():
        zsh.type(f"heapledger {typed}\t")
        time.sleep(0.2)  # what comes at once is taken for pasted, tabulators too
        zsh.type("\n")
        zsh.wait_for("got [")
        assert zsh.wait_for("]").rstrip() == wanted


# --- fish ---


def test_fish(folder, capsys):
    need("fish")
    script = folder / "script.fish"
    script_for("fish", script, capsys)
    for typed, wanted in TYPED.items():
        ask = f"source {script}; complete -C 'heapledger {typed}'"
        text = subprocess.check_output(["fish", "--no-config", "-c", ask], cwd=folder, text=True, timeout=SECONDS)
        offers = [offer.split("\t")[0] for offer in text.splitlines()]
        assert len(offers) == 1 and wanted.endswith(offers[0].replace("\\ ", " ")), (typed, offers)
