"""The code in the documents runs: each ```python block in a fresh interpreter, as it stands."""

import pathlib
import re

import pytest
from children import run

DOCUMENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CASES = [
    pytest.param(block, id=f"{name}-{number}")
    for name in ("in-code.md", "pytest.md")
    for number, block in enumerate(BLOCK.findall((DOCUMENTS / name).read_text()), 1)
]


@pytest.mark.parametrize("source", CASES)
def test_block(source):
    run(source)
