"""Loading a file opens that file and nothing else, imports nothing and runs nothing, whatever the file names."""

import heapledger
import pytest
from children import run

# Names that somebody might open, import or run.
NAMES = ["/etc/passwd", "os.py", "../../secret", "$(reboot)", "file:///etc/passwd", "/proc/self/mem", "\0", "-c"]

LOADING = """
    import sys, heapledger
    import heapledger._unpickle  # what loading needs is imported before we look on
    for path in sys.argv[2:]:
        heapledger.Snapshot.load(path)
    quiet = ("builtins.id", "object.__", "sys._getframe", "gc.", "fcntl.")  # they lead nowhere
    events = []
    looking = True
    def look(event, arguments):
        if looking and not event.startswith(quiet):
            events.append((event, str(arguments[0]) if arguments else ""))
    sys.addaudithook(look)
    for path in sys.argv[2:]:
        loaded = heapledger.Snapshot.load(path)
        loaded.statistics("traceback"), loaded.filter_traces([heapledger.Filter(True, "*")]), str(loaded.traces[0])
        repr(loaded.metadata if hasattr(loaded, "metadata") else None)
    looking = False
    wrong = [one for one in events if one[0] != "open" or one[1] not in sys.argv[2:]]
    print(len(events) >= len(sys.argv[2:]) if sys.argv[1] == "load" else "", wrong)
"""


@pytest.fixture
def files(tmp_path):
    rows = [(0, size, tuple((name, line) for line in (1, 2)), 2) for size, name in enumerate(NAMES)]
    paths = []
    for format in ("hlsnap", "tracemalloc"):
        paths.append(str(tmp_path / format))
        heapledger.Snapshot(rows, 2).dump(paths[-1], format)
    return paths


def test_loading_touches_nothing_else(files):
    assert run(LOADING, "load", *files) == "True []\n"


def test_the_test_sees_what_it_should(files):
    """Formatting a traceback looks for source lines, as the standard library's does: the hook notices."""
    source = LOADING.replace("loaded.statistics(", "loaded.traces[0].traceback.format(), loaded.statistics(")
    assert "/etc/passwd" in run(source, "format", *files)
