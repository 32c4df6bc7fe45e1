"""What tests do with a page: where frames are, what they are called, what is painted there."""

import contextlib
import shutil
import time

ROW = 21
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def started_browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield started
        started.close()


def go_to(page, address):
    """Open it, and wait until it is ready."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector("#table thead tr", state="attached")


def wait_until(page, expression, argument=None):
    """Wait until the expression is true in the page.

    Playwright's wait_for_function looks once and then evaluates text inside the page, which the page's
    security policy forbids: it works only if the first look succeeds.
    """
    end = time.monotonic() + 10
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(20)


def choose(page, group, value):
    page.click(f"#{group} button[data-value={value}]")


def point(page, row, x=12):
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    return box["x"] + x, box["y"] + row * ROW + ROW // 2


def click_row(page, row, x=12):
    """Click on a frame; the heaviest of a row is the leftmost."""
    page.mouse.click(*point(page, row, x))


def hover_row(page, row, x=12):
    """The name in the box that shows beside the pointer."""
    page.mouse.move(*point(page, row, x))
    return page.locator("#tip b").text_content()


def names_down(page, most=20):
    """The names of the leftmost frames, from the first row down."""
    names = []
    for row in range(min(most, int(page.evaluate("document.getElementById('graph-space').offsetHeight")) // ROW)):
        names.append(hover_row(page, row))
    return names


def colour_at(page, row, x):
    """(red, green, blue) of the canvas, beside the label."""
    return page.evaluate(
        """([row, x]) => {
            const canvas = document.getElementById("canvas"), ratio = window.devicePixelRatio;
            const copy = new OffscreenCanvas(1, 1).getContext("2d");
            copy.drawImage(canvas, x * ratio, (row * 21 + 2) * ratio, 1, 1, 0, 0, 1, 1);
            return [...copy.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        }""",
        [row, x],
    )


def address(page):
    """What the address says after the #."""
    return page.evaluate("location.hash")


def path(page):
    return [button.text_content() for button in page.locator("#path button").all()]


def focused(page):
    return page.locator("#focused").text_content()


def totals(page):
    names = [item.text_content() for item in page.locator("#totals dt").all()]
    values = [item.evaluate("element => element.firstChild.textContent") for item in page.locator("#totals dd").all()]
    return dict(zip(names, values, strict=True))


def rows(page):
    """The table: [[cell, ...], ...]."""
    return page.evaluate(
        """[...document.querySelectorAll("#table tbody tr")].map(
            (row) => [...row.cells].map((cell) => cell.innerText.trim()))"""
    )


def wait_for_table(page, text):
    wait_until(page, "text => document.getElementById('table').innerText.includes(text)", text)


ZOOM = """(y) => new Promise((resolve) => {
    const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), start = performance.now();
    const look = () => {
        const drawn = performance.getEntriesByName("heapledger-drawn").at(-1)?.startTime ?? 0;
        if (drawn > start) resolve((drawn - start) / 1000);
        else requestAnimationFrame(look);
    };
    canvas.dispatchEvent(new MouseEvent("click", { clientX: box.left + 20, clientY: box.top + y, bubbles: true }));
    requestAnimationFrame(look);
    setTimeout(() => resolve(Infinity), 10_000); // nothing was drawn
})"""


def open_again(page):
    """Seconds from the beginning of the load to the first drawing."""
    page.goto("about:blank")
    page.go_back()
    page.wait_for_selector("html[data-ready]")
    wait_until(page, "performance.getEntriesByName('heapledger-ready').length > 0")
    return page.evaluate("performance.getEntriesByName('heapledger-ready')[0].startTime") / 1000


def zoom_again(page, row):
    """Seconds from a click on a row of the whole graph to the drawing of what is zoomed to."""
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    took = page.evaluate(ZOOM, row * ROW + 10)
    assert address(page).count(".") == row - 1
    return took


def fixes(page):
    """The cells of each line in the box at the top."""
    return page.evaluate(
        """[...document.querySelectorAll("#fix li button")].map(
            (line) => [...line.children].map((cell) => cell.textContent))"""
    )
