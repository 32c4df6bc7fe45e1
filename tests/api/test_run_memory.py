"""What `heapledger run` adds to a process's memory when it writes: little, whatever the ledger holds."""

import re

import heapledger
import pytest
from running import Folder

# 2^13 stacks with blocks of eight sizes at each. What is global goes after our function of atexit has written the file.
PROGRAM = """\
    import os

    def peak(opened=os.open, read=os.read, close=os.close):
        file = opened("/proc/self/status", 0)
        text = read(file, 4096)
        close(file)
        return int(text.split(b"VmHWM:")[1].split()[0])

    class Last:
        def __del__(self, peak=peak, write=os.write):
            write(1, b"after %d\\n" % peak())

    def deep(depth, kept):
        if depth == 0:
            kept += [bytes(100 * size) for size in range(1, 9)]
            return
        deep(depth - 1, kept)
        deep(depth - 1, kept)

    kept, last = [], Last()
    deep(13, kept)
    os.write(1, b"before %d\\n" % peak())
    """


@pytest.mark.parametrize("options", [["-q"], []], ids=["quiet", "closing lines"])
def test_writing_takes_little_memory(tmp_path, options):
    """Not a copy of the ledger, which has 64 bytes for each site, nor what reading the file again would take."""
    folder = Folder(tmp_path)
    done = folder.traced(folder.script(PROGRAM), options=[*options, "-n", "25", "-o", "x.hlsnap"])
    numbers = dict(re.findall(r"(\w+) (\d+)", done.out))
    assert done.status == 0 and set(numbers) == {"before", "after"}, done
    assert ("the lines that held most" in done.err) == (options == []), done
    rows = len({(trace.traceback, trace.size) for trace in heapledger.Capture.load(tmp_path / "x.hlsnap").live.traces})
    assert rows > 60_000
    grown = (int(numbers["after"]) - int(numbers["before"])) * 1024
    assert grown < 24 * rows, (grown, rows)
