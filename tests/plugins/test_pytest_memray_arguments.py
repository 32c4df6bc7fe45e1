"""The arguments that pytest-memray's markers have, with the same meaning."""

from pytest_runs import Run

FILTERED = """
import library, pytest

seen = []

def only_other(stack):
    seen.append(stack)
    return not any(frame.function == "keep" and frame.filename.endswith("library.py") for frame in stack.frames)

@pytest.mark.limit_leaks("1 KB", filter_fn=only_other)
def test_filtered():
    library.keep(5000)

@pytest.mark.limit_leaks("1 KB", filter_fn=only_other)
def test_not_filtered():
    library.keep(5000)
    library.kept.append(bytearray(6000))

def test_whole_stacks_the_most_recent_frame_first():
    frames = [(frame.function, frame.lineno) for frame in seen[0].frames]
    assert frames[:2] == [("keep", 3), ("test_filtered", 12)]
    assert len(frames) > 30 and frames[-1][0] in ("_run_module_as_main", "<module>")
"""


def test_filter_fn(write):
    folder = write(library="kept = []\ndef keep(size):\n    kept.append(bytearray(size))\n", test_all=FILTERED)
    run = Run(folder, "-rf")
    run.has("1 failed, 2 passed", "FAILED test_all.py::test_not_filtered")
    run.has(" KiB in 2 blocks left behind by each call, 1000 B allowed")
    assert "library.py:3" not in run.text, run.text


THREADS = """
import threading, pytest

kept = []

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def large():
    kept.append(bytearray(300_000))

@pytest.mark.limit_memory("100 KB", current_thread_only=True)
def test_peak_elsewhere():
    in_thread(large)

@pytest.mark.limit_memory("100 KB")
def test_peak_anywhere():
    in_thread(large)

@pytest.mark.limit_memory("100 KB", current_thread_only=True)
def test_peak_here():
    in_thread(lambda: None)
    large()

@pytest.mark.limit_leaks("10 KB", current_thread_only=True)
def test_leak_elsewhere():
    in_thread(large)

@pytest.mark.limit_leaks("10 KB", current_thread_only=True)
def test_leak_here():
    in_thread(lambda: None)
    large()
"""


def test_current_thread_only(write):
    run = Run(write(test_all=THREADS), "-rf", "--tb=no")
    failed = [line.split()[1].partition("::")[2] for line in run.text.splitlines() if line.startswith("FAILED")]
    assert failed == ["test_peak_anywhere", "test_peak_here", "test_leak_here"], run.text
    run.has("heapledger: peak 29", "heapledger: 293.", " KiB in 2 blocks left behind by each call")
