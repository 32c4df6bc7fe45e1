"""A program that embeds the interpreter: initialised, traced and finalized again and again."""

import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig

import heapledger
import pytest

SOURCE = pathlib.Path(__file__).with_name("embedding.c")
ROUNDS = 4
TIMEOUT = 120


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    variable = sysconfig.get_config_var
    library = pathlib.Path(variable("LIBDIR"), variable("LDLIBRARY") or "")
    if not variable("Py_ENABLE_SHARED") and not library.is_file():
        pytest.skip(f"this interpreter comes without a library to link with: there is no {library}")
    target = tmp_path_factory.mktemp("embedding") / "embedding"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{sysconfig.get_path('include')}", SOURCE]
    command += [f"-L{variable('LIBDIR')}", f"-Wl,-rpath,{variable('LIBDIR')}", "-rdynamic"]
    command += [f"-lpython{sysconfig.get_config_var('LDVERSION')}", *shlex.split(variable("LIBS") or ""), "-lm"]
    built = subprocess.run([*command, "-o", target], capture_output=True, text=True, check=False)
    if built.returncode != 0 and "cannot find -lpython" in built.stderr:
        pytest.skip("this interpreter comes without a library to link with")
    assert built.returncode == 0, built.stderr
    return target


def test_interpreters_in_a_row(program):
    """Py_Initialize after Py_Finalize: the extension stays in the process, each interpreter finds it as good as new."""
    # A second interpreter in a process does not look for the virtual environment again on every version.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables["PYTHONPATH"] = str(pathlib.Path(heapledger.__file__).parent.parent)
    command = [program, sys._base_executable, str(ROUNDS)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=variables, cwd="/")
    assert (child.returncode, child.stdout) == (0, "done\n"), f"{child.returncode}\n{child.stdout}\n{child.stderr}"
