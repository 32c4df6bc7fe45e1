"""The page of a report on a big snapshot (bench/big_snapshot.py), in a real browser: its size, opening it, zooming.

    tools/browser && python bench/page.py [--stacks 100000] [--repeats 15] [--out bench/RESULTS.md]

A page is opened when its graph has been drawn for the first time, and a zoom has ended when the graph has been drawn
anew; the page marks both moments. The table follows when the graph has been seen. Medians.
"""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import big_snapshot
import report

PART = "page"
TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "browser"
ROWS = (3, 8, 12)


def make_page(folder, stacks):
    snapshot, page = folder / "big.hlsnap", folder / "big.html"
    subprocess.run([sys.executable, big_snapshot.__file__, snapshot, "--stacks", str(stacks)], check=True)
    subprocess.run([sys.executable, "-I", "-m", "heapledger", "report", snapshot, "-o", page], check=True)
    return page


def measure(path, repeats):
    """(browser's version, [[what, figure], ...])"""
    sys.path.insert(0, str(TESTS))
    import conftest
    import looking
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=conftest.FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        opened = [looking.open_again(page) for _ in range(repeats)]
        rows = [["size", f"{path.stat().st_size / 1e6:.2f} MB"], ["open", f"{statistics.median(opened) * 1e3:,.0f} ms"]]
        for row in ROWS:
            zoomed = [looking.zoom_again(page, row) for _ in range(repeats)]
            worst = max(zoomed) * 1e3
            rows.append([f"zoom to row {row}", f"{statistics.median(zoomed) * 1e3:,.0f} ms (at most {worst:,.0f})"])
        version = browser.version
        browser.close()
    return version, rows


def render(version, rows, stacks, repeats):
    text = (
        f"### Page\n\nThe report of {stacks:,} distinct stacks of {big_snapshot.DEPTH} frames in Chromium {version}, "
        f"without a graphics processor. Medians of {repeats}.\n\n"
    )
    return text + report.table(["", "figure"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stacks", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", help="the file to write the result into, as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
        version, rows = measure(make_page(pathlib.Path(folder), options.stacks), options.repeats)
    part = render(version, rows, options.stacks, options.repeats)
    if options.out:
        report.write(options.out, {PART: part})
    print(part)


if __name__ == "__main__":
    main()
