"""The core on the other C library of Linux: its unit tests, built with musl-gcc (Debian: musl-tools) and run.

musl-gcc has no headers of the kernel; they are the same for both libraries. There is no sanitizer for musl, and no
interpreter here: the extension is only compiled and linked, and a program loads it as far as it can without one.
"""

import concurrent.futures
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sysconfig

import pytest

FLAGS = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-maybe-uninitialized", "-Werror"]
LOADER = """
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **names)
{
    if (count != 2 || dlopen(names[1], RTLD_LAZY) == NULL)
        puts(dlerror());
    return 0;
}
"""

if shutil.which("musl-gcc") is None and os.environ.get("CI", "false") == "false":
    pytest.skip("there is no musl-gcc; on Debian: apt-get install musl-tools", allow_module_level=True)


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def tls_flags(checkout):
    """What meson.build takes for a C library that is not glibc, where this compiler knows it."""
    rules = (checkout / "meson.build").read_text()
    flag = re.search(r"tls_args = cc.get_supported_arguments\('(.*)'\)", rules).group(1)
    return [flag] if platform.machine() == "x86_64" else []


@pytest.fixture(scope="module")
def compile(tmp_path_factory, checkout):
    """compile(sources, flags): the object files, made by all processors."""
    kernel = tmp_path_factory.mktemp("kernel")
    multiarch = pathlib.Path("/usr/include", sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu")
    for name in ("linux", "asm-generic", "asm"):
        place = pathlib.Path("/usr/include", name)
        (kernel / name).symlink_to(place if place.exists() else multiarch / name)

    def compile(sources, *flags):
        folder = tmp_path_factory.mktemp("objects")
        objects = [folder / f"{path.parent.name}_{path.stem}.o" for path in sources]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            commands = [
                pool.submit(run, "musl-gcc", *FLAGS, *flags, "-idirafter", kernel, "-c", path, "-o", made)
                for path, made in zip(sources, objects, strict=True)
            ]
            for command in commands:
                command.result()
        return objects

    return compile


def test_unit_tests_of_the_core(checkout, compile, tmp_path):
    testing = ["-DHL_FAULTS", f'-DHL_CHECKOUT="{checkout}"']
    core = compile(sorted((checkout / "src" / "core").glob("*.c")), *testing)
    tests = sorted((checkout / "tests" / "core").glob("test_*.c"))
    for path, made in zip(tests, compile(tests, *testing), strict=True):
        program = tmp_path / path.stem
        run("musl-gcc", "-o", program, made, *core, "-lm")
        run(program)


def test_the_extension_can_be_loaded(checkout, compile, tmp_path):
    """As far as to the names that an interpreter would give it: no thread-local storage that musl refuses."""
    version = sysconfig.get_config_var("py_version_nodot")
    floors = sorted((checkout / "src").glob("*/*.c"))
    sources = [path for path in floors if not path.stem.startswith("frames_3") or path.stem == f"frames_{version}"]
    flags = ["-fPIC", "-fvisibility=hidden", "-DNDEBUG", '-DHL_VERSION="0"', f"-I{checkout}/heapledger/include"]
    objects = compile(sources, *flags, *tls_flags(checkout), "-isystem", sysconfig.get_path("include"))
    run("musl-gcc", "-shared", "-o", tmp_path / "_ledger.so", *objects)
    (tmp_path / "loader.c").write_text(LOADER)
    run("musl-gcc", "-o", tmp_path / "loader", tmp_path / "loader.c")
    said = run(tmp_path / "loader", tmp_path / "_ledger.so")
    assert "TLS" not in said and re.search(r"_?Py\w+: symbol not found", said), said
