"""Compile extension_example.c, or another extension of the tests, in the ways that extensions are linked."""

import pathlib
import subprocess
import sysconfig

import heapledger

SOURCE = pathlib.Path(__file__).with_name("extension_example.c")

# Slots filled at the first call, in a page that stays writable; all at once, in a page that is sealed; without a stub.
LINKING = {
    "lazy": ["-Wl,-z,lazy", "-Wl,-z,norelro"],
    "sealed": ["-Wl,-z,now", "-Wl,-z,relro"],
    "no-stub": ["-fno-plt", "-Wl,-z,relro"],
}


def build(folder, linking="lazy", name="extension_example", source=SOURCE):
    """Returns the folder, for sys.path."""
    target = pathlib.Path(folder, name + sysconfig.get_config_var("EXT_SUFFIX"))
    include = [f"-I{sysconfig.get_path('include')}", f"-I{heapledger.get_include()}"]
    strict = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    command = ["cc", *strict, "-shared", "-fPIC", "-pthread", *include, *LINKING[linking], str(source)]
    subprocess.run([*command, "-o", str(target)], check=True, capture_output=True, text=True)
    return folder
