"""Who cannot use heapledger is told so by the build, before it fails for another reason.

Other interpreters are this one with its answers changed; another system is one that we claim to build for. No compiler
can be found, so what fails without a clear word fails for that.
"""

import subprocess
import sys

import pytest

INTERPRETERS = {
    "3.10": ("s/%d\\.%d/3.10/g" % sys.version_info[:2], "supports CPython 3.11 to 3.15; this is 3.10."),
    "3.16": ("s/%d\\.%d/3.16/g" % sys.version_info[:2], "supports CPython 3.11 to 3.15; this is 3.16."),
    "PyPy": ("s/^CPython$/PyPy/", "supports CPython 3.11 to 3.15; this is PyPy."),
    "free-threaded": (
        's/"Py_GIL_DISABLED": *[^,]*,//; s/"variables": {/&"Py_GIL_DISABLED": 1, /',
        "does not support free-threaded builds",
    ),
}


def configure(checkout, tmp_path, *options):
    """Run meson without a compiler; its answer."""
    environment = {"PATH": str(tmp_path / "nothing"), "CC": str(tmp_path / "no-compiler"), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "mesonbuild.mesonmain", "setup", *options, tmp_path / "build", checkout]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", INTERPRETERS)
def test_interpreter(checkout, tmp_path, name):
    change, message = INTERPRETERS[name]
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n'{sys.executable}' \"$@\" | /usr/bin/sed '{change}'\n")
    python.chmod(0o755)
    (tmp_path / "native.ini").write_text(f"[binaries]\npython = '{python}'\n")
    said = configure(checkout, tmp_path, "--native-file", tmp_path / "native.ini")
    assert f"ERROR: Problem encountered: heapledger {message}" in said


@pytest.mark.parametrize("system", ["darwin", "windows", "freebsd"])
def test_system(checkout, tmp_path, system):
    machine = f"[host_machine]\nsystem = '{system}'\ncpu_family = 'x86_64'\ncpu = 'x86_64'\nendian = 'little'\n"
    (tmp_path / "cross.ini").write_text(machine)
    said = configure(checkout, tmp_path, "--cross-file", tmp_path / "cross.ini")
    assert f"ERROR: Problem encountered: heapledger runs on Linux only; this is {system}." in said


def test_this_interpreter_gets_as_far_as_the_compiler(checkout, tmp_path):
    """So the tests above fail where they should."""
    (tmp_path / "native.ini").write_text(f"[binaries]\npython = '{sys.executable}'\n")
    said = configure(checkout, tmp_path, "--native-file", tmp_path / "native.ini")
    assert "Unknown compiler" in said and "heapledger supports" not in said
