import heapledger
import pytest

pytest.register_assert_rewrite("histories", "same")  # a failure there shows its values too


@pytest.fixture(autouse=True)
def consistent():
    """The ledger's invariants hold after each test, before tracing is stopped, and nothing was lost."""
    yield
    assert heapledger._validate() is None
    assert heapledger.lost_records() == 0
