"""The core on the other C library of Linux: its unit tests, built with musl-gcc (Debian: musl-tools) and run.

musl-gcc has no headers of the kernel; they are the same for both libraries. There is no sanitizer for musl, and no
interpreter here: the extension is compiled, linked and loaded, with something in the place of each name of Python's.
"""

import concurrent.futures
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

FLAGS = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-maybe-uninitialized", "-Werror"]
LOADER = """
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

int main(int count, char **names)
{
    bool loaded = count == 2 && dlopen(names[1], RTLD_NOW) != NULL;
    puts(loaded ? "loaded" : dlerror());
    return !loaded;
}
"""

if shutil.which("musl-gcc") is None and os.environ.get("CI", "false") == "false":
    pytest.skip("there is no musl-gcc; on Debian: apt-get install musl-tools", allow_module_level=True)


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A folder with the kernel's headers and no other."""
    folder = tmp_path_factory.mktemp("kernel")
    multiarch = pathlib.Path("/usr/include", sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu")
    for name in ("linux", "asm-generic", "asm"):
        place = pathlib.Path("/usr/include", name)
        (folder / name).symlink_to(place if place.exists() else multiarch / name)
    return folder


def compile(sources, folder, *flags):
    """The object files, made by all processors."""
    objects = [folder / f"{path.stem}.o" for path in sources]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [
            pool.submit(run, "musl-gcc", *FLAGS, *flags, "-c", path, "-o", made)
            for path, made in zip(sources, objects, strict=True)
        ]
        for command in commands:
            command.result()
    return objects


def test_unit_tests_of_the_core(checkout, kernel, tmp_path):
    flags = ["-DHL_FAULTS", f'-DHL_CHECKOUT="{checkout}"', "-idirafter", kernel]
    core = compile(sorted((checkout / "src" / "core").glob("*.c")), tmp_path, *flags)
    tests = sorted((checkout / "tests" / "core").glob("test_*.c"))
    for path, made in zip(tests, compile(tests, tmp_path, *flags), strict=True):
        run("musl-gcc", "-o", tmp_path / path.stem, made, *core, "-lm")
        run(tmp_path / path.stem)


def test_the_extension_can_be_loaded(checkout, kernel, tmp_path):
    """By the rules of meson.build: no thread-local storage that musl refuses, nothing that musl does not have."""
    (tmp_path / "native.ini").write_text(
        f"[binaries]\nc = 'musl-gcc'\npython = '{sys.executable}'\n"
        f"[built-in options]\nc_args = ['-idirafter', '{kernel}']\n"
    )
    options = ["-Db_lto=false", "-Doptimization=0", "-Dwerror=true", "--native-file", tmp_path / "native.ini"]
    run("meson", "setup", *options, tmp_path / "build", checkout)
    run("meson", "compile", "-C", tmp_path / "build")
    (library,) = (tmp_path / "build").glob("_ledger.*.so")
    missing = re.findall(r"\b[Uw] (_?Py\w+)", run("nm", "--undefined-only", library))
    interpreter = "".join(f"char {name}[4096];\n" for name in missing)
    (tmp_path / "loader.c").write_text(LOADER + interpreter)
    run("musl-gcc", "-rdynamic", "-o", tmp_path / "loader", tmp_path / "loader.c")
    run(tmp_path / "loader", library)
