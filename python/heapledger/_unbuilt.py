"""The message for a missing extension module: for which interpreter, if any, the package was built."""

from __future__ import annotations

import importlib.machinery
import os
import platform
import re

NO_TLS = (
    ": other libraries have used up the C library's reserve; import heapledger before them, or run the program with "
    "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048"
)


def explain(folder: str, error: ImportError) -> str:
    """Explain an ImportError of heapledger._ledger. If it was built for this interpreter, use the error's own text."""
    files = [name for name in os.listdir(folder) if re.match(r"_ledger\..*so$", name)]
    if any(f"_ledger{suffix}" in files for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        return f"{error}{NO_TLS}" if "static TLS" in str(error) else str(error)
    tags = (re.match(r"_ledger\.cpython-3(\d+)([a-z]*)-", name) for name in sorted(files))
    versions = [f"3.{tag[1]}{tag[2]}" for tag in tags if tag]
    if not versions:
        return f"heapledger in {folder} has no extension module: it is the source, not an installed package"
    here = f"{platform.python_implementation()} {platform.python_version()}"
    return f"heapledger in {folder} was built for CPython {' and '.join(versions)}, and this is {here}"
