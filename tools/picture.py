"""Make docs/report.png, the picture in the README: a real program traced, its report in a real browser.

    make picture

Needs what tools/browser installs.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

TOOLS = pathlib.Path(__file__).resolve().parent
PICTURE = TOOLS.parent / "docs" / "report.png"
SIZE = {"width": 1240, "height": 860}
MOST_BYTES = 200_000
# The program under a name without a folder: paths of the machine that made the picture say nothing to its readers.
TRACED = """
import heapledger
heapledger.start(25)
space = {"__name__": "shop"}
exec(compile(open("shop.py").read(), "shop.py", "exec"), space)
kept = space["open_shop"]()
heapledger.take_capture().dump("shop.hlsnap")
"""


def make_report(folder):
    shutil.copyfile(TOOLS / "picture_program.py", pathlib.Path(folder, "shop.py"))
    subprocess.run([sys.executable, "-P", "-c", TRACED], check=True, cwd=folder)
    subprocess.run([sys.executable, "-P", "-m", "heapledger", "report", "shop.hlsnap"], check=True, cwd=folder)
    return pathlib.Path(folder, "report.html")


def photograph(report):
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(report.as_uri())
        page.wait_for_selector("#table tbody tr")
        page.evaluate("document.getElementById('facts').textContent = 'python shop.py'")
        page.screenshot(path=PICTURE)
        browser.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        photograph(make_report(folder))
    size = PICTURE.stat().st_size
    print(f"{PICTURE}: {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"that is more than {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
