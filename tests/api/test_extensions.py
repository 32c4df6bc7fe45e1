"""Memory that C extensions report: through PyTraceMalloc_Track, and through heapledger.h. Each test has a child."""

import pathlib
import subprocess
import sysconfig
import textwrap

import extension
import heapledger
import pytest
from children import run


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The folder of the example extension, linked the usual way."""
    return extension.build(tmp_path_factory.mktemp("extension"))


HELPERS = """
import importlib, sys
sys.path.insert(0, sys.argv[1])

def in_domain(domain, engine=None):
    engine = engine or sys.modules["heapledger"]
    snapshot = engine.take_snapshot().filter_traces([engine.DomainFilter(True, domain)])
    return sorted((trace.size, trace.traceback[-1].lineno) for trace in snapshot.traces)

def consistent():
    assert heapledger._validate() is None, heapledger._validate()
    assert heapledger.lost_records() == 0

def line():
    return sys._getframe(1).f_lineno
"""


def run_with_helpers(source, *arguments):
    return run(HELPERS + textwrap.dedent(source), *arguments)


# --- PyTraceMalloc_Track ---


@pytest.mark.parametrize("linking", extension.LINKING)
@pytest.mark.parametrize("order", ["imported first", "started first"])
def test_reported_blocks_are_entered(tmp_path, linking, order):
    """However the extension is linked and whichever came first; and its pages are left as they were."""
    run_with_helpers(
        """
        import heapledger

        def protections():
            with open("/proc/self/maps") as file:
                lines = [text.split() for text in file if "extension_example" in text]
            pages = {}
            for text in lines:
                first, last = (int(part, 16) for part in text[0].split("-"))
                pages |= dict.fromkeys(range(first, last, 4096), text[1])
            return pages

        if sys.argv[2] == "imported first":
            import extension_example
            before = protections()
            heapledger.start(3)
            assert protections() == before
            assert in_domain(77) == []
        else:
            heapledger.start(3)
            import extension_example
            assert [size for size, _ in in_domain(77)] == [extension_example.ARENA_SIZE]
        for domain in (5, 0xffffffff):
            assert extension_example.report(domain, 0x1001, 30) == 0; here = line()
            assert in_domain(domain) == [(30, here)]
            assert extension_example.report(domain, 0x1001, 40) == 0; here = line()
            assert in_domain(domain) == [(40, here)]
            assert extension_example.withdraw(domain, 0x1001) == 0
            assert extension_example.withdraw(domain, 0x1001) == 0
            assert in_domain(domain) == []
        consistent()
        """,
        extension.build(tmp_path, linking),
        order,
    )


@pytest.mark.parametrize("limit", [1, 3])
def test_the_same_line_in_two_domains(example, limit):
    run_with_helpers(
        """
        import heapledger, extension_example
        heapledger.start(int(sys.argv[2]))
        for _ in range(100):
            extension_example.report_raw(5, 4321)
        assert [size for size, _ in in_domain(5)] == [4321] * 100
        assert [size for size, _ in in_domain(0)].count(4321) == 100
        consistent()
        """,
        example,
        limit,
    )


def test_sizes_that_do_not_add_up(example, tmp_path):
    """What would take the sum beyond 63 bits is refused and counted as lost; what stood at the address is gone."""
    run_with_helpers(
        """
        import heapledger, extension_example
        heapledger.start()
        assert extension_example.report(5, 0x1000, 2**62) == 0
        assert extension_example.report(5, 0x2000, 7) == 0
        assert extension_example.report(5, 0x2000, 2**62) == -1
        assert extension_example.report(5, 0x3000, 2**63 - 1) == -1
        assert [size for size, _ in in_domain(5)] == [2**62] and heapledger.lost_records() == 2
        snapshot = heapledger.take_snapshot()
        assert snapshot.statistics("lineno")[0].size == 2**62
        snapshot.dump(sys.argv[2])
        assert heapledger.Snapshot.load(sys.argv[2]).traces == snapshot.traces
        assert extension_example.withdraw(5, 0x1000) == 0
        assert heapledger.get_traced_memory()[0] < 2**40 and heapledger._validate() is None
        """,
        example,
        tmp_path / "file",
    )


SAME_NUMBERS = """
import heapledger, extension_example
engine = importlib.import_module(sys.argv[2])
assert extension_example.report(5, 1, 1) == -2 and extension_example.withdraw(5, 1) == -2
engine.start(2)
block = bytes(5000)

def show(*what):
    traces = engine.take_snapshot().traces
    entered = [(trace.domain, trace.size, trace.traceback[-1].lineno) for trace in traces if trace.size > 1000]
    print(*what, *sorted(trace for trace in entered if trace[2] in lines))

def report(domain, address, size):
    show("report", domain, size, extension_example.report(domain, address, size))

def withdraw(domain, address):
    show("withdraw", domain, extension_example.withdraw(domain, address))

lines = {report.__code__.co_firstlineno + 1, line() - 13, line() + 23}
address = id(block)
show()
report(0, address, 1100)                # in place of what the hooks entered
report(0, address + 16, 3000)           # inside it, and overlapping
report(0, address + 24, 3001)
report(0, address + 1, 1010)            # odd
report(0, address + 4096, 1 << 40)
report(7, address, 1005)                # another domain does not care
report(0, 0, 1011)
report(0xffffffff, (1 << 64) - 1, 1012)
report(0, (1 << 64) - 16, 1013)
withdraw(7, address)
withdraw(7, address + 16)
withdraw(0, address + 16)
withdraw(0, address + 24)
withdraw(0, address + 1)
withdraw(0, address + 4096)
withdraw(0, 0)
withdraw(0xffffffff, (1 << 64) - 1)
withdraw(0, (1 << 64) - 16)
del block
show("freed")                           # with what was reported last
block = bytes(6000)
show()
withdraw(0, id(block))
del block
show("freed")
report(5, 1, 1001)
engine.clear_traces()
withdraw(5, 1)
report(5, 1, 1002)
report(5, 1, 2000)
print(engine.get_traced_memory()[1] >= 2000)
engine.stop()
print(extension_example.report(5, 1, 1), extension_example.withdraw(5, 1))
engine.start()
show()
assert heapledger._validate() is None
"""


def test_numbers_are_the_stdlib_s(example):
    theirs = run(HELPERS + SAME_NUMBERS, example, "tracemalloc")
    ours = run(HELPERS + SAME_NUMBERS, example, "heapledger")
    assert ours == theirs
    assert "(0, 5033, " in ours and "(0, 6033, " in ours and f"(0, {1 << 40}, " in ours


@pytest.mark.parametrize("order", [("tracemalloc", "heapledger"), ("heapledger", "tracemalloc")])
def test_both_engines_see_it(example, order):
    run_with_helpers(
        """
        import heapledger, tracemalloc, extension_example
        for name in sys.argv[2:]:
            importlib.import_module(name).start(2)
        assert extension_example.report(5, 16, 50) == 0; here = line()
        assert in_domain(5) == in_domain(5, tracemalloc) == [(50, here)]
        assert extension_example.withdraw(5, 16) == 0
        assert in_domain(5) == in_domain(5, tracemalloc) == []
        first, second = (importlib.import_module(name) for name in sys.argv[2:])
        second.stop()
        assert extension_example.report(5, 16, 50) == 0
        assert len(in_domain(5, first)) == 1
        second.start()
        first.stop()
        assert extension_example.report(5, 16, 60) == 0; here = line()
        assert in_domain(5, second) == [(60, here)]
        second.stop()
        assert extension_example.report(5, 16, 50) == -2
        """,
        example,
        *order,
    )


def test_libraries_that_others_load_are_found_by_the_next_snapshot(example):
    run_with_helpers(
        """
        import ctypes, heapledger
        heapledger.start()
        library = ctypes.PyDLL(sys.argv[2])
        heapledger.take_snapshot()
        library.PyInit_extension_example.restype = ctypes.py_object
        module = library.PyInit_extension_example()
        assert [size for size, _ in in_domain(77)] == [module.ARENA_SIZE]
        assert module.report(5, 16, 50) == 0
        """,
        example,
        pathlib.Path(example, "extension_example" + sysconfig.get_config_var("EXT_SUFFIX")),
    )


def test_failing_imports_read_the_same(tmp_path):
    """The dynamic linker's message reaches the interpreter although its dlopen leads through us."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    pathlib.Path(tmp_path, "garbage" + suffix).write_bytes(b"no library" * 1000)
    source = pathlib.Path(tmp_path, "unbound.c")
    source.write_text("void missing_here(void); void PyInit_unbound(void) { missing_here(); }\n")
    target = pathlib.Path(tmp_path, "unbound" + suffix)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(target)], check=True)
    program = """
        import heapledger
        if sys.argv[2] == "traced":
            heapledger.start()
        for name in ("garbage", "unbound"):
            try:
                importlib.import_module(name)
            except ImportError as error:
                print(error)
        """
    plain = run_with_helpers(program, tmp_path, "plain")
    assert "invalid ELF header" in plain and "missing_here" in plain
    assert run_with_helpers(program, tmp_path, "traced") == plain


def test_unloaded_libraries_are_no_trouble(example, tmp_path):
    """A library that we have written to goes away, and others come in its place."""
    for number, linking in enumerate(extension.LINKING):
        extension.build(tmp_path, linking, f"copy{number}")
    run_with_helpers(
        """
        import ctypes, glob, _ctypes, heapledger
        paths = sorted(glob.glob(sys.argv[2] + "/copy*"))
        for round in range(30):
            heapledger.start()
            library = ctypes.PyDLL(paths[round % 3])
            heapledger.take_snapshot()
            library.PyInit_extension_example.restype = ctypes.py_object
            handle = library._handle
            if round % 2:
                heapledger.stop()
            del library
            _ctypes.dlclose(handle)
            heapledger.take_snapshot() if heapledger.is_tracing() else heapledger.start()
            import extension_example
            assert extension_example.report(5, 16, round) == 0
            assert [size for size, _ in in_domain(5)] == [round]
            heapledger.stop()
        """,
        example,
        tmp_path,
    )


def test_two_copies_in_one_process(example, tmp_path):
    """Another tool that does as we do: the last to start has the calls, and neither leads to the other in circles."""
    extension.build(tmp_path, name="later")
    run_with_helpers(
        """
        import importlib.machinery, importlib.util, shutil, heapledger
        from heapledger import _ledger
        path = sys.argv[2] + "/_ledger.so"
        shutil.copy(_ledger.__file__, path)
        loader = importlib.machinery.ExtensionFileLoader("copy._ledger", path)
        copy = importlib.util.module_from_spec(importlib.util.spec_from_loader("copy._ledger", loader))
        loader.exec_module(copy)

        def seen(engine):
            return sorted(trace[1] for trace in engine._get_traces() if trace[0] == 5)

        import extension_example
        for round in range(3):
            heapledger.start()
            copy.start()
            assert extension_example.report(5, 16, 50 + round) == 0
            assert seen(copy) == [50 + round] and seen(heapledger) == []
            heapledger.start()
            assert extension_example.report(5, 32, 70) == 0
            assert seen(copy) == [50 + round] and seen(heapledger) == [70]
            copy.stop()
            assert extension_example.withdraw(5, 32) == 0 and seen(heapledger) == []
            heapledger.stop()
        assert extension_example.report(5, 16, 50) == -2
        heapledger.start()
        loader = importlib.machinery.ExtensionFileLoader("extension_example", sys.argv[3])
        later = importlib.util.module_from_spec(importlib.util.spec_from_loader("extension_example", loader))
        assert later.report(5, 16, 60) == 0 and seen(heapledger) == [60]
        consistent()
        """,
        example,
        tmp_path,
        pathlib.Path(tmp_path, "later" + sysconfig.get_config_var("EXT_SUFFIX")),
    )


# --- heapledger.h ---


def test_header_without_heapledger(example):
    """The extension works where nobody imports heapledger, and does not import it."""
    run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import extension_example as example
        for _ in range(2):
            assert not example.connect() and not example.is_tracing()
            address, status = example.allocate(5, 100)
            assert address and status == -2 and example.release(5, address) == -2
            assert example.in_threads(4, 5, 10, 100) == 4
        assert not any(name.startswith("heapledger") for name in sys.modules)
        import heapledger
        assert not example.is_tracing()
        assert example.connect() and example.connect()
        assert not example.is_tracing() and example.allocate(5, 100)[1] == -2
        heapledger.start()
        assert example.is_tracing() and example.allocate(5, 100)[1] == 0
        """,
        example,
    )


def test_header_while_tracing(example):
    run_with_helpers(
        """
        import heapledger, extension_example as example
        assert example.allocate(5, 100)[1] == -2
        for round in range(3):
            heapledger.start(2)
            traced = heapledger.get_traced_memory()[0]
            first, status = example.allocate(5, 100000); here = line()
            assert status == 0 and in_domain(5) == [(100000, here)]
            second, status = example.allocate(6, 200000); there = line()
            assert in_domain(5) == [(100000, here)] and in_domain(6) == [(200000, there)]
            assert 300000 <= heapledger.get_traced_memory()[0] - traced < 310000
            assert example.release(6, first) == 0                  # not entered under this domain
            assert in_domain(5) == [(100000, here)]
            assert example.release(5, first) == 0 and in_domain(5) == []
            assert in_domain(6) == [(200000, there)]
            assert heapledger.get_traced_memory()[1] >= 300000
            peak = heapledger.take_peak_snapshot().filter_traces([heapledger.DomainFilter(True, 5)])
            assert [trace.size for trace in peak.traces] == [100000]
            heapledger.clear_traces()
            assert in_domain(6) == [] and example.release(6, second) == 0
            consistent()
            heapledger.stop()
            assert not example.is_tracing() and example.release(6, second) == -2
        import tracemalloc
        tracemalloc.start()
        assert example.allocate(5, 100)[1] == -2                   # the header is for heapledger alone
        """,
        example,
    )


def test_header_in_threads_that_python_does_not_know(example):
    run_with_helpers(
        """
        import threading, heapledger, extension_example as example
        heapledger.start(3)
        done = threading.Event()
        def churn():
            while not done.is_set():
                [bytes(n) for n in range(100)]
        others = [threading.Thread(target=churn) for _ in range(2)]
        for thread in others:
            thread.start()
        mine = [threading.Thread(target=example.in_threads, args=(4, 100 + n, 2000, 48)) for n in range(3)]
        for thread in mine:
            thread.start()
        for thread in mine:
            thread.join()
        done.set()
        for thread in others:
            thread.join()
        for n in range(3):
            assert in_domain(100 + n) == [(48, 0)] * 4000
        snapshot = heapledger.take_snapshot().filter_traces([heapledger.DomainFilter(True, 100)])
        assert snapshot.traces[0].traceback[-1].filename == "<unknown>"
        consistent()
        """,
        example,
    )


def test_header_after_fork(example):
    run_with_helpers(
        """
        import os, heapledger, extension_example as example
        heapledger.start()
        kept, _ = example.allocate(5, 100); here = line()
        process = os.fork()
        if process == 0:
            try:
                assert in_domain(5) == [(100, here)]
                assert example.release(5, kept) == 0 and in_domain(5) == []
                example.allocate(5, 300)
                assert [size for size, _ in in_domain(5)] == [300]
                consistent()
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        assert os.waitpid(process, 0)[1] == 0
        assert in_domain(5) == [(100, here)]
        consistent()
        """,
        example,
    )


@pytest.mark.parametrize("language", ["c99", "c++11"])
def test_header_in_other_languages(tmp_path, language):
    source = tmp_path / "include.source"
    source.write_text(
        "#include <Python.h>\n#include <heapledger.h>\n"
        "int f(void) { return heapledger_connect() + heapledger_is_tracing()\n"
        "+ heapledger_track(1, 2, 3) + heapledger_untrack(1, 2); }\n"
    )
    command = ["cc", "-x", language.rstrip("0123456789"), f"-std={language}", "-c", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{heapledger.get_include()}", "-isystem", sysconfig.get_path("include")]
    done = subprocess.run([*command, str(source), "-o", "/dev/null"], capture_output=True, text=True, check=False)
    if "cc1plus" in done.stderr:
        pytest.skip("there is no C++ compiler")
    assert done.returncode == 0, done.stderr
