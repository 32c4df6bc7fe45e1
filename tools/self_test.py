"""Whether an installed heapledger works, in a second and without any other package: what is run with every new wheel.

The tests proper need the checkout and pytest. Exits 1 with a traceback at the first thing that is wrong.
"""

import os
import subprocess
import sys
import tempfile

import heapledger

# python -c and -m look for modules in the current folder first, and a checkout has a heapledger that is not built.
ELSEWHERE = tempfile.gettempdir()


def run(*arguments, **variables):
    """What an interpreter prints; it must end well."""
    command, environment = [sys.executable, *arguments], {**os.environ, **variables}
    return subprocess.check_output(command, cwd=ELSEWHERE, env=environment, text=True, timeout=60)


def trace():
    """What is allocated is found, under its line, at the peak too, and is gone when freed."""
    heapledger.start(5)
    kept = [bytes(1000) for _ in range(1000)]
    capture = heapledger.take_capture()
    largest = capture.live.statistics("lineno")[0]
    assert largest.traceback[0].filename == __file__, largest
    assert largest.count >= 1000 and largest.size > 1_000_000, largest
    kept.clear()
    assert heapledger.get_traced_memory()[0] < 100_000 and heapledger.get_traced_memory()[1] > 1_000_000
    assert heapledger.lost_records() == 0 and heapledger._validate() is None
    heapledger.stop()
    return capture


def keep(capture):
    """A file holds what was dumped."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "self_test.hlsnap")
        capture.dump(name)
        loaded = heapledger.Capture.load(name)
    for moment in ("live", "peak", "allocated"):
        before, after = getattr(capture, moment), getattr(loaded, moment)
        assert before.statistics("traceback") == after.statistics("traceback"), moment


def start_with_the_interpreter():
    """The variable starts the tracer, in a child that never imports heapledger by itself."""
    script = "import sys; m = sys.modules['heapledger._ledger']; print(m.is_tracing(), m.get_traceback_limit())"
    assert run("-c", script, HEAPLEDGER="5") == "True 5\n"


def run_the_command():
    assert run("-m", "heapledger", "--help").startswith("usage: heapledger")


def main():
    keep(trace())
    start_with_the_interpreter()
    run_the_command()
    print("heapledger works:", sys.version.split()[0], sys.platform, heapledger.__file__)


if __name__ == "__main__":
    main()
