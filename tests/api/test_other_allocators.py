"""Other allocators below the hooks, larger pages, objects that the collector leaves alone: tracebacks are right."""

import os
import pathlib

import pytest
from beside import beside

BUILD = pathlib.Path(__file__).parent.parent.parent / "build"

ALLOCATE = """
heapledger.start(limit)
random_stacks.check(12)
blocks = [bytearray(size) for size in range(1, 200_000, 997)]
blocks = [block + b"x" for block in blocks]
del blocks[::2]
"""


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_preloaded(name):
    """They hand out other addresses than the C library: blocks of any alignment and far apart."""
    _, libc = os.confstr("CS_GNU_LIBC_VERSION").split()
    found = [*BUILD.glob(f"allocators-{libc}/**/{name}"), *pathlib.Path("/usr/lib").glob(f"*/{name}")]
    if not found:
        pytest.skip(f"{name} is not there; tools/allocators fetches it on Debian")
    for allocator in ("pymalloc", "malloc"):
        beside(
            f"assert {name!r} in open('/proc/self/maps').read()\n" + ALLOCATE,
            LD_PRELOAD=str(found[0]),
            PYTHONMALLOC=allocator,
        )


@pytest.mark.parametrize("allocator", ["malloc", "pymalloc"])
def test_huge_pages(allocator):
    """The C library's heap, and from 3.15 on the interpreter's arenas, in pages of 2 MB where the system has them."""
    beside(
        ALLOCATE,
        GLIBC_TUNABLES="glibc.malloc.hugetlb=1",
        PYTHONMALLOC=allocator,
        PYTHON_PYMALLOC_HUGEPAGES="1",
    )


def test_frozen():
    """gc.freeze() before a fork: the child inherits the blocks, and their tracebacks, and frees what it likes."""
    beside(
        """
        import gc, os
        heapledger.start(limit)
        class Node:
            pass
        def make():
            nodes = [Node() for _ in range(1000)]
            for node in nodes:
                node.me, node.load = node, bytes(5000)
            return nodes
        def loads():
            return sum(trace.size == sys.getsizeof(bytes(5000)) for trace in heapledger.take_snapshot().traces)
        nodes = make()
        gc.collect()
        gc.freeze()
        assert gc.get_freeze_count() > 1000
        random_stacks.check(15, rounds=5)
        child = os.fork()
        first = make.__code__.co_firstlineno
        assert loads() == 1000
        assert {heapledger.get_object_traceback(node)[-1].lineno for node in nodes} == {first + 1}
        assert {heapledger.get_object_traceback(node.load)[-1].lineno for node in nodes} == {first + 3}
        node = None
        del nodes[500:]
        gc.collect()
        assert loads() == 1000      # cycles that the collector leaves alone
        gc.unfreeze()
        gc.collect()
        assert loads() == 500
        random_stacks.check(16, rounds=5)
        consistent()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
