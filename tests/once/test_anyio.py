"""The pytest plugin with coroutines that anyio runs: measured by themselves, with what the loop does meanwhile."""

from pytest_runs import Run

TESTS = """
import anyio, pytest

pytestmark = pytest.mark.anyio
kept = []

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture
async def rows():
    await anyio.sleep(0)
    yield [bytes(1000) for _ in range(500)]  # no test's

@pytest.mark.limit_memory("200 KB")
async def test_too_large():
    await anyio.sleep(0)
    block = bytes(300_000)

@pytest.mark.limit_memory("200 KB")
async def test_small(rows):
    await anyio.sleep(0)
    assert len(rows) == 500

@pytest.mark.limit_leaks("2 KB")
async def test_leak():
    await anyio.sleep(0)
    kept.append(bytearray(5000))

@pytest.mark.limit_leaks("2 KB")
async def test_clean():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 0)
"""


def test_markers(tmp_path):
    (tmp_path / "test_all.py").write_text(TESTS, encoding="utf-8")
    run = Run(tmp_path, plugins=["anyio"])
    run.has("2 failed, 2 passed", "block = bytes(300_000)", "kept.append(bytearray(5000))")
    run.has("heapledger: peak 29", "heapledger: 5.", "blocks left behind by each call, 2.0 KiB allowed")


def test_every_test_is_listed(tmp_path):
    (tmp_path / "test_all.py").write_text(TESTS, encoding="utf-8")
    run = Run(tmp_path, "--heapledger", plugins=["anyio"])
    peaks = run.text.partition("the largest peaks above the start of the test:")[2]
    for name in ("test_too_large", "test_small", "test_leak", "test_clean"):
        assert f"test_all.py::{name}\n" in peaks, run.text
