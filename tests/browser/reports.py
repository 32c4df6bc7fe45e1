"""Programs that are really traced, and the pages made of what they allocate."""

import pathlib
import subprocess
import sys

import heapledger

SOURCES = {
    "/srv/shop/app.py": """
def entry(kept):
    load(kept)
    index(kept)

def load(kept):
    for _ in range(40):
        parse(kept, 5000)

def parse(kept, size):
    decode(kept, size)

def index(kept):
    kept.extend(bytearray(1000) for _ in range(50))

def temporary():
    return len([bytearray(4000) for _ in range(100)])
""",
    "/usr/lib/python3.11/json/decoder.py": """
def decode(kept, size):
    scan(kept, size)
""",
    "/srv/venv/lib/python3.11/site-packages/fast/scan.py": """
def scan(kept, size):
    kept.append(bytearray(size))
""",
}
# A program in a file of its own, whose lines can be shown: it imports, calls the standard library, and goes deeper than
# the frames that are kept.
SHOP = """\
import json
import xml.dom.minidom

KEPT = []


def deep(level):
    if level == 18:
        KEPT.append(bytearray(30_000))
    if level == 0:
        KEPT.append(bytearray(60_000))
    else:
        deep(level - 1)


def price(number):
    KEPT.append(bytearray(300_000 * number))


def load():
    text = json.dumps([{"number": number, "name": str(number)} for number in range(4000)])
    KEPT.append(json.loads(text))
    price(1); price(1)
    price(2)
    deep(20)


def grow():
    for number in range(200):
        KEPT.append("order %d" % number * 100)


def main():
    load()
    yield
    grow()
    yield


if __name__ == "__main__":
    list(main())
"""
SHOP_FRAMES = 12
STEPS = 6
ODD = (
    "<script>alert(1)</script>.py",
    "</script><img src=x onerror=alert(2)>.py",
    "a\u2028b\u202ec\0d\ud800.py",
    "{{data}}&lt;b&gt;.py",
)


def compiled(sources):
    space = {}
    for name, source in sources.items():
        exec(compile(source, name, "exec"), space)
    return space


def trace_moments(folder):
    space, kept = compiled(SOURCES), []
    heapledger.start(10)
    space["entry"](kept)
    space["temporary"]()
    heapledger.take_capture().dump(folder / "program.hlsnap")


def trace_series(folder):
    """Captures of one process, which grows by load, and shrinks at the end."""
    space, kept = compiled(SOURCES), []
    heapledger.start(10)
    for number in range(STEPS):
        if number == STEPS - 1:
            kept.clear()
        else:
            space["load"](kept)
        if number == 1:
            space["index"](kept)
        heapledger.take_capture().dump(folder / f"step{number}.hlsnap")


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-P", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done
    return done


def traced(folder, what):
    """Trace in a process of its own, in which nobody else allocates."""
    run(__file__, what, folder)


def trace_shop(folder):
    """shop.hlsnap of the whole program, and what it held before and after it has grown."""
    import runpy

    main = runpy.run_path(str(folder / "shop.py"))["main"]
    heapledger.start(SHOP_FRAMES)
    for name, _ in zip(("before", "after"), main(), strict=True):
        heapledger.take_capture().dump(folder / f"{name}.hlsnap")


def run_shop(folder):
    (folder / "shop.py").write_text(SHOP)
    run("-m", "heapledger", "run", "-q", "-n", SHOP_FRAMES, "-o", folder / "shop.hlsnap", folder / "shop.py")
    traced(folder, "shop")
    return folder


def write_odd(folder):
    """Names that look like markup, in a file without functions' names."""
    traces = [(0, 1000 * (place + 1), ((name, 7), ("top.py", 1)), 2) for place, name in enumerate(ODD)]
    heapledger.Snapshot(traces, 2).dump(folder / "odd.hlsnap", format="hlsnap")
    return folder / "odd.hlsnap"


def make_page(output, *arguments):
    run("-m", "heapledger", "report", *arguments, "-o", output)
    return output


if __name__ == "__main__":
    {"moments": trace_moments, "series": trace_series, "shop": trace_shop}[sys.argv[1]](pathlib.Path(sys.argv[2]))
