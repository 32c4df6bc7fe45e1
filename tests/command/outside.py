"""Tools of other projects that tests need."""

import os
import shutil
import sys

import pytest

# What these tests look at does not depend on the interpreter, so one of them must have the tools in CI: not one in
# tools/sid's tree.
INSISTING = os.environ.get("CI", "false") == "true" and sys.version_info[:2] == (3, 11)


def need(tool):
    path = shutil.which(tool)
    if path is None:
        if INSISTING:
            pytest.fail(f"CI needs {tool}")
        pytest.skip(f"there is no {tool} here")
    return path
