import pathlib

import extension
import heapledger
import pytest

pytest.register_assert_rewrite("histories", "same")  # a failure there shows its values too


@pytest.fixture(autouse=True)
def consistent():
    """The ledger's invariants hold after each test, before tracing is stopped, and nothing was lost."""
    yield
    assert heapledger._validate() is None
    assert heapledger.lost_records() == 0


@pytest.fixture(scope="session")
def companion(tmp_path_factory):
    """A folder with the extension module that plays the other tool."""
    source = pathlib.Path(__file__).with_name("companion.c")
    return extension.build(tmp_path_factory.mktemp("companion"), name="companion", source=source)
