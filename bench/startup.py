"""What heapledger.pth costs programs that do not use heapledger.

`python bench/startup.py` prints a row of the table in docs/compat.md for this interpreter; `--runs N` is how many fresh
processes each figure is made of.

A child reads a folder as `site` does when the interpreter starts, twice up to 3.14, because a virtual environment's
folder is read twice there, and says how long that took: a folder without .pth files, with an empty one, with one that
has a comment in it, with one that has a line which does nothing, and with ours. The first is subtracted from the
others. So a tenth of a millisecond is not looked for in the difference of two starts. Children take turns; the figure
is their lower quartile, as what else goes on in the machine only adds to it.
"""

import argparse
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

OURS = pathlib.Path(__file__).resolve().parent.parent / "python" / "startup" / "heapledger.pth"
LIMIT = 0.4 if sys.version_info >= (3, 14) else 0.2  # milliseconds
CONTENTS = {"none": None, "empty": "", "comment": "# a comment\n", "line": "import sys\n", "ours": OURS.read_text()}
CHILD = """
import site, sys, time
known = set()
began = time.perf_counter()
for _ in range(2 if sys.version_info < (3, 15) else 1):
    site.addsitedir(sys.argv[1], known)
print((time.perf_counter() - began) * 1000)
"""


def child(*arguments):
    return float(subprocess.check_output([sys.executable, "-I", *arguments]))


def measure(runs):
    """{name: milliseconds}."""
    times = {name: [] for name in CONTENTS}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in CONTENTS.items():
            place = pathlib.Path(folder, name)
            place.mkdir()
            if text is not None:
                (place / "some.pth").write_text(text)
        for _ in range(runs):
            for name in CONTENTS:
                times[name].append(child("-S", "-c", CHILD, f"{folder}/{name}"))
    return {name: statistics.quantiles(taken, n=4)[0] for name, taken in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="processes for each figure")
    options = parser.parse_args()
    times = measure(options.runs)
    empty, comment, line, ours = (times[name] - times["none"] for name in CONTENTS if name != "none")
    print("| version | an empty file, ms | a comment | `import sys` | heapledger.pth | of that, the line | limit |")
    print("|---|---|---|---|---|---|---|")
    cells = [*(f"{cost:.2f}" for cost in (empty, comment, line, ours, ours - comment)), str(LIMIT)]
    print("|", " | ".join([platform.python_version(), *cells]), "|")


if __name__ == "__main__":
    main()
