"""Importing heapledger after libraries that have used up the C library's reserve of thread-local storage."""

import os
import platform
import struct
import subprocess
import sys

import heapledger
import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the module takes of glibc's reserve only")

MOST_BYTES = 64  # docs/platforms.md says how many it is

SOURCE = """
__attribute__((tls_model("initial-exec"))) __thread char taken[SIZE];
char *place(void) { return taken; }
"""

# Load what there is, the largest first, while it can be; then import. What was loaded is said on stdout.
PROGRAM = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        continue
    print(name)
try:
    import heapledger
except ImportError as error:
    sys.exit(str(error))
heapledger.start()
kept = bytes(10_000)
assert heapledger.get_traced_memory()[0] > 10_000
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Libraries that take 1,024 bytes of the reserve down to 8, several of each."""
    folder, names = tmp_path_factory.mktemp("libraries"), []
    for size in (1024, 512, 256, 128, 64, 32, 16, 8):
        made = folder / f"{size}.so"
        command = ["cc", "-shared", "-fPIC", f"-DSIZE={size}", "-x", "c", "-", "-o", str(made)]
        subprocess.run(command, input=SOURCE, check=True, capture_output=True, text=True)
        for number in range(4):
            names.append(folder / f"{size}-{number}.so")
            names[-1].write_bytes(made.read_bytes())
    return list(map(str, names))


def run(names, tunables=""):
    command = [sys.executable, "-P", "-c", PROGRAM, *names]
    environment = {**os.environ, "GLIBC_TUNABLES": tunables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_the_message_says_what_helps(libraries):
    refused = run(libraries)
    assert refused.returncode == 1
    assert "import heapledger before" in refused.stderr, refused.stderr
    advice = "glibc.rtld.optional_static_tls=2048"
    assert f"GLIBC_TUNABLES={advice}" in refused.stderr
    helped = run(refused.stdout.split(), advice)
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout == refused.stdout


def test_how_much_of_the_reserve_we_take():
    with open(heapledger._ledger.__file__, "rb") as file:
        content = file.read()
    assert content[:5] == b"\x7fELF\x02"
    (table,) = struct.unpack_from("<Q", content, 0x20)
    size, count = struct.unpack_from("<HH", content, 0x36)
    segments = [struct.unpack_from("<II6Q", content, table + number * size) for number in range(count)]
    thread_local = [memory for kind, _, _, _, _, _, memory, _ in segments if kind == 7]
    assert len(thread_local) == 1 and thread_local[0] <= MOST_BYTES, thread_local
