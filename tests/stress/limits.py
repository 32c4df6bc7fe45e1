"""Nothing left: addresses, file descriptors, room on the disk, standard streams. The program's errors are its own."""

import os
import subprocess
import sys
import tempfile
import textwrap

from common import choices, rounds

CHILD_SECONDS = 60

BEGIN = """
import errno, os, resource, signal, sys
import heapledger
def limit(which, most):
    resource.setrlimit(which, (most, resource.getrlimit(which)[1]))
def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
"""

# Each ends with status 0 if all was well. {n} is drawn anew each time.
CASES = {
    "addresses, from the start": """
        room = {n} % 200 + 8
        limit(resource.RLIMIT_AS, used() + (room << 20))
        try:
            heapledger.start({n} % 30 + 1)
        except MemoryError:
            assert not heapledger.is_tracing()
            sys.exit(0)
        try:
            kept = [bytes(10 + n % 700) for n in range(20000)]
        except MemoryError:
            assert room < 20  # the blocks take 9 of them, and our tables a share
            sys.exit(0)
        missing = sum(heapledger.get_object_traceback(block) is None for block in kept[-2000:])
        assert missing <= heapledger.lost_records() and heapledger._validate() in (None, "no memory to validate")
    """,
    "addresses, in the middle": """
        heapledger.start(5)
        limit(resource.RLIMIT_AS, used() + ({n} % 60 + 2 << 20))
        kept, asked = [], 0
        try:
            while True:
                kept.append(bytes(200 + len(kept) % 3000))
                if len(kept) % 1000 == 0:
                    try:
                        snapshot = heapledger.take_snapshot()
                        assert sum(s.size for s in snapshot.statistics("lineno")) > len(kept) * 200
                        asked += 1
                    except MemoryError:
                        pass
        except MemoryError:
            pass
        number = len(kept)
        while len(kept) > 100:
            kept.pop()
        limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
        missing = sum(heapledger.get_object_traceback(block) is None for block in kept)
        assert missing <= heapledger.lost_records() and heapledger._validate() in (None, "no memory to validate")
        heapledger.stop()
        heapledger.start()
        block = bytes(3000)
        assert heapledger.get_object_traceback(block) is not None
    """,
    "descriptors": """
        heapledger.start()
        snapshot = heapledger.take_snapshot()
        snapshot.dump("file")
        held = [os.open("/dev/null", os.O_RDONLY) for _ in range({n} % 40)]
        limit(resource.RLIMIT_NOFILE, len(held) + 3 + {n} % 2)
        for action in (lambda: snapshot.dump("file"), lambda: heapledger.Snapshot.load("file")):
            try:
                action()
            except OSError as error:
                assert error.errno == errno.EMFILE, error
        heapledger.take_snapshot()
        for descriptor in held:
            os.close(descriptor)
        limit(resource.RLIMIT_NOFILE, 50)
        assert len(heapledger.Snapshot.load("file").traces) == len(snapshot.traces)
        assert os.listdir() == ["file"]
    """,
    "room in a file": """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        heapledger.start()
        small = heapledger.Snapshot([(0, 1, (("a", 1),), 1)], 1)
        small.dump("file")
        before = open("file", "rb").read()
        kept = [bytes(n % 700) for n in range(3000)]
        large = heapledger.take_snapshot()
        limit(resource.RLIMIT_FSIZE, len(before) + {n} % 1000)
        try:
            large.dump("file", ("hlsnap", "tracemalloc")[{n} % 2])
        except OSError as error:
            assert error.errno in (errno.EFBIG, errno.ENOSPC), error
            assert open("file", "rb").read() == before
        assert os.listdir() == ["file"]
        assert heapledger._validate() is None
    """,
    "a device without room": """
        heapledger.start()
        try:
            heapledger.take_snapshot().dump("/dev/full", ("hlsnap", "tracemalloc")[{n} % 2])
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
        else:
            sys.exit("there was room")
        assert heapledger._validate() is None
    """,
    "closed streams": """
        for descriptor in [(0, 1, 2), (2,), (1, 2), (0,)][{n} % 4]:
            os.close(descriptor)
        heapledger.start(3)
        kept = [bytes(n) for n in range(1000)]
        snapshot = heapledger.take_snapshot()
        snapshot.dump("file")
        assert len(heapledger.Snapshot.load("file").traces) == len(snapshot.traces)
        assert heapledger._validate() is None
    """,
    "streams that are None": """
        sys.stdout = sys.stderr = sys.stdin = None
        heapledger.start(3)
        kept = [bytes(n) for n in range(1000)]
        heapledger.take_snapshot().statistics("lineno")
        assert heapledger._validate() is None
    """,
    "stack": """
        import threading
        threading.stack_size(64 << 10)
        heapledger.start({n} % 50 + 1)
        def work():
            kept.append([bytes(n) for n in range(500)])
            heapledger.take_snapshot().statistics("traceback")
        kept = []
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(kept) == 4 and heapledger._validate() is None and heapledger.lost_records() == 0
    """,
}


def main():
    names = sorted(CASES)
    choices.shuffle(names)
    for number in rounds(least=len(names)):
        name = names[number % len(names)]
        source = BEGIN + textwrap.dedent(CASES[name]).format(n=choices.randrange(10**6))
        with tempfile.TemporaryDirectory() as folder:
            child = subprocess.run(
                [sys.executable, "-X", "faulthandler", "-c", source],
                capture_output=True, text=True, timeout=CHILD_SECONDS, cwd=folder, env=dict(os.environ),
            )  # fmt: skip
        if child.returncode != 0:
            sys.exit(f"{name}: {child.returncode}\n{child.stdout}\n{child.stderr}\n{source}")


if __name__ == "__main__":
    main()
