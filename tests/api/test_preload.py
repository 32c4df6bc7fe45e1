"""The library that `heapledger run` preloads, by itself: which variables it listens to, and which file it loads."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import pytest
from running import PRELOAD

SOURCE = pathlib.Path(__file__).with_name("privileged.c")
LEDGER = "_ledger" + sysconfig.get_config_var("EXT_SUFFIX")
SOMEBODY = 65534  # nobody's number


def compile_with(*options):
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", str(SOURCE), *options]
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder():
    """beside/ has the library and the ledger that it should load, elsewhere/ another of the same name."""
    with tempfile.TemporaryDirectory() as name:  # pytest's are closed to other users
        os.chmod(name, 0o755)
        yield fill(pathlib.Path(name))


def fill(path):
    for where in ("beside", "elsewhere"):
        (path / where).mkdir()
        compile_with("-shared", "-fPIC", f'-DLEDGER="{where}"', "-o", str(path / where / LEDGER))
    shutil.copy(PRELOAD, path / "beside" / "_preload.so")
    compile_with(f"-DVERSION={sys.hexversion}", "-rdynamic", "-ldl", "-o", str(path / "program"))
    return path


def said(folder, program="program", library=None, **variables):
    """What the program wrote, in the folder where another ledger is, which is also where the linker looks first."""
    elsewhere = str(folder / "elsewhere")
    done = subprocess.run(
        [str(folder / program), library or str(folder / "beside" / "_preload.so")],
        env={"LD_LIBRARY_PATH": elsewhere, **variables},
        cwd=elsewhere,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


def test_the_ledger_beside_it_is_loaded(folder):
    assert said(folder, HEAPLEDGER_RUN="x") == ["beside", "secure", "0"]


def test_without_the_variable_nothing_is_loaded(folder):
    assert said(folder) == ["secure", "0"]


def test_a_library_that_was_loaded_by_a_relative_path_loads_nothing(folder):
    """The path might mean another file by now."""
    assert said(folder, library="../beside/_preload.so", HEAPLEDGER_RUN="x") == ["secure", "0"]


@pytest.mark.parametrize("how", ["set-uid", "set-gid", "capabilities"])
def test_programs_with_more_rights_than_their_caller(folder, how):
    """Once loaded, however that came about, the library does not listen to the variable there."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give a program more rights")
    options = subprocess.run(["findmnt", "-no", "OPTIONS", "-T", str(folder)], capture_output=True, text=True).stdout
    if "nosuid" in options:
        pytest.skip("the file system knows no set-uid")
    program = folder / how
    shutil.copy(folder / "program", program)
    if how == "capabilities":
        # vfs_cap_data of linux/capability.h: revision 2 and effective, CAP_SYS_NICE permitted.
        numbers = (0x02000001, 1 << 23, 0, 0, 0)
        os.setxattr(program, "security.capability", b"".join(n.to_bytes(4, "little") for n in numbers))
        command = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    else:
        os.chown(program, SOMEBODY, SOMEBODY)
        os.chmod(program, 0o4755 if how == "set-uid" else 0o2755)
        command = []
    words = subprocess.run(
        [*command, str(program), str(folder / "beside" / "_preload.so")],
        env={"HEAPLEDGER_RUN": "x", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert words.stdout.split() == ["secure", "1"], words
