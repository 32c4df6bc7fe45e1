"""The report as people use it: zoom, search, toggles, keys, links, light and dark."""

import collections
import html

import heapledger
import pytest
from heapledger.command import _text
from looking import (
    ROW,
    address,
    choose,
    click_row,
    colour_at,
    focused,
    hover_row,
    names_down,
    path,
    rows,
    totals,
    wait_for_table,
)

DOWN = ["all", "<module>", "trace_moments", "entry", "load", "parse", "decode", "scan"]


def size_of(program, moment="live", function=None):
    """Bytes at a moment, of stacks with a frame in this function."""
    snapshot = getattr(heapledger.Capture.load(program), moment)
    return sum(
        trace.size
        for trace in snapshot.traces
        if function is None or any(frame.name == function for frame in trace.traceback)
    )


def test_shows_what_there_is(open_page, program_page, program):
    page = open_page(program_page)
    assert page.title() == "program.hlsnap - heapledger"
    assert page.locator("h1").text_content() == "program.hlsnap"
    assert _text.size(size_of(program)) == totals(page)["Alive at the end"]
    assert names_down(page)[: len(DOWN)] == DOWN
    assert "standard library" in page.locator("#legend").text_content()


def test_zooms_by_click_and_back(open_page, program_page):
    page = open_page(program_page)
    click_row(page, 4)
    assert path(page) == DOWN[:5]
    assert names_down(page)[0] == "load"
    assert "zoom=" in address(page)
    wait_for_table(page, "scan")
    assert "through load" in page.locator("#table-hint").text_content()
    click_row(page, 2)
    assert path(page) == DOWN[:7]
    page.go_back()
    assert path(page) == DOWN[:5]
    page.click("#path button:first-child")
    assert path(page) == ["all"]
    assert names_down(page)[: len(DOWN)] == DOWN
    page.go_back()
    assert path(page) == DOWN[:5]


def test_goes_by_keyboard(open_page, program_page):
    page = open_page(program_page)
    page.focus("#graph")
    assert focused(page).startswith("all")
    for name in DOWN[1:5]:
        page.keyboard.press("ArrowDown")
        assert focused(page).startswith(name + ",")
    page.keyboard.press("ArrowUp")
    item = page.locator("#focused")
    assert (item.get_attribute("aria-level"), item.get_attribute("aria-posinset")) == ("4", "1")
    assert int(item.get_attribute("aria-setsize")) >= 2
    page.keyboard.press("ArrowRight")  # another line of the same function
    assert focused(page).startswith("entry,")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("index,")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("load,") and "% of all" in focused(page)
    page.keyboard.press("Enter")
    assert path(page) == DOWN[:5]
    page.keyboard.press("ArrowUp")  # not above what is zoomed to
    assert focused(page).startswith("load,")
    page.keyboard.press("Backspace")
    assert path(page) == DOWN[:4]
    page.keyboard.press("Escape")
    assert path(page) == ["all"]


def test_keys_for_everything(open_page, program_page):
    page = open_page(program_page)
    page.keyboard.press("i")
    assert names_down(page)[1] == "scan"
    page.keyboard.press("i")
    page.keyboard.press("b")
    assert page.locator("#measure [aria-checked=true]").text_content() == "Blocks"
    page.keyboard.press("m")
    assert page.locator("#moment [aria-checked=true]").text_content() == "At the peak"
    page.keyboard.press("/")
    page.keyboard.type("ibm")
    assert page.input_value("#search") == "ibm"
    assert page.locator("#measure [aria-checked=true]").text_content() == "Blocks"
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_every_control_is_reached_by_tab(open_page, program_page):
    page = open_page(program_page)
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('[id]').id"))
    assert {"theme", "moment", "measure", "view", "hide", "search", "path", "graph", "group", "table"} <= reached


def test_search_says_its_share(open_page, program_page, program):
    page = open_page(program_page)
    page.fill("#search", "PARSE app.py")
    part, whole = size_of(program, function="parse"), size_of(program)
    share, size = page.locator("#matched").text_content().split(" · ")
    assert _text.size(part) == size
    assert share == f"{100 * part / whole:.1f}%"
    assert {row[-1].split("\n")[0].split("/")[0].strip() for row in rows(page)} == {"parse"}
    page.fill("#search", "/^(parse|index) /")
    assert page.locator("#matched").text_content() != "nothing found"
    page.fill("#search", "no such thing")
    assert page.locator("#matched").text_content() == "nothing found"
    page.fill("#search", "/(/")
    assert page.locator("#matched").text_content() == "nothing found"


def test_a_row_of_the_table_is_found_in_the_graph(open_page, program_page):
    page = open_page(program_page)
    page.click("#table tbody tr:first-child td.name button")
    assert page.input_value("#search") == "scan"


def test_bytes_or_blocks(open_page, program_page, program):
    page = open_page(program_page)
    choose(page, "measure", "blocks")
    traces = heapledger.Capture.load(program).live.traces
    assert totals(page)["Alive at the end"] == f"{len(traces):,}"
    (name, own), *_ = collections.Counter(trace.traceback[-1].name for trace in traces).most_common(1)
    wait_for_table(page, f"{own:,}\t")
    assert (rows(page)[0][0], rows(page)[0][-1].split("/")[0].strip()) == (f"{own:,}", name)
    assert "measure=blocks" in address(page)


def test_moments(open_page, program_page, program):
    page = open_page(program_page)
    assert "temporary" not in [row[-1].split("\n")[0] for row in rows(page)]
    choose(page, "moment", "peak")
    assert _text.size(size_of(program, "peak")) == totals(page)["At the peak"]
    wait_for_table(page, "temporary")
    choose(page, "moment", "allocated")
    assert _text.size(size_of(program, "allocated")) == totals(page)["Allocated in all"]


def test_inverted(open_page, program_page):
    page = open_page(program_page)
    choose(page, "view", "inverted")
    assert names_down(page)[: len(DOWN)] == ["all", *DOWN[:0:-1]]
    click_row(page, 2)
    assert path(page) == ["all", "scan", "decode"]


def test_hides_frames_by_kind(open_page, program_page):
    page = open_page(program_page)
    before = totals(page)
    page.click("#hide summary")
    page.check("#hide input[name=stdlib]")
    page.check("#hide input[name=site-packages]")
    assert names_down(page)[:6] == DOWN[:6]
    assert "decode" not in names_down(page) and "scan" not in names_down(page)
    assert totals(page) == before
    assert page.locator("#hide-count").text_content() == " (2)"
    choose(page, "view", "inverted")
    assert names_down(page)[1] == "parse"
    page.click("#hide summary")
    page.uncheck("#hide input[name=site-packages]")
    assert names_down(page)[1:3] == ["scan", "parse"]


def test_table_is_sortable_and_grouped(open_page, program_page):
    page = open_page(program_page)
    own = [row[0] for row in rows(page)]
    assert rows(page)[0][-1].startswith("scan")
    page.click("#table thead th:nth-child(1) button")
    assert page.locator("#table th:nth-child(1)").get_attribute("aria-sort") == "ascending"
    assert [row[0] for row in rows(page)] == own[::-1]
    page.click("#table thead th:nth-child(3) button")
    assert page.locator("#table th:nth-child(3)").get_attribute("aria-sort") == "descending"
    assert rows(page)[0][3] == "100.0%"
    page.click("#table thead th.name button")
    names = [row[-1].split("\n")[0] for row in rows(page)]
    assert names[0].startswith("<module>")
    choose(page, "group", "package")
    wait_for_table(page, "fast")
    choose(page, "group", "line")
    wait_for_table(page, "scan.py:3")
    choose(page, "group", "file")
    wait_for_table(page, "fast/scan.py")


def test_a_link_keeps_the_view(open_page, program_page):
    page = open_page(program_page)
    click_row(page, 4)
    choose(page, "measure", "blocks")
    choose(page, "moment", "peak")
    choose(page, "group", "line")
    page.fill("#search", "decode")
    fragment = address(page)
    again = open_page(program_page, fragment)
    assert path(again) == path(page) == DOWN[:5]
    for group in ("measure", "moment", "group"):
        chosen = f"#{group} [aria-checked=true]"
        assert again.locator(chosen).text_content() == page.locator(chosen).text_content()
    assert again.input_value("#search") == "decode"
    assert again.locator("#matched").text_content() == page.locator("#matched").text_content() != ""


@pytest.mark.parametrize(
    "fragment", ["#zoom=999999.-1.x&from=9&to=-3&moment=none&view=&hide=a,b&sort=x&group=?", "#%E0%A4%A"]
)
def test_a_link_that_makes_no_sense(open_page, program_page, fragment):
    page = open_page(program_page, fragment)
    assert path(page) == ["all"]
    assert names_down(page)[: len(DOWN)] == DOWN


def background(page):
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def brightness(colour):
    return sum(int(part) for part in colour.strip("rgb()").split(",")) / 3


def test_light_and_dark(open_page, program_page):
    light = open_page(program_page, color_scheme="light")
    dark = open_page(program_page, color_scheme="dark")
    assert brightness(background(light)) > 200 > 60 > brightness(background(dark))
    assert sum(colour_at(light, 2, 3)) > sum(colour_at(dark, 2, 3))
    light.click("#theme")
    assert background(light) == background(dark)
    light.wait_for_timeout(100)
    assert colour_at(light, 2, 3) == colour_at(dark, 2, 3)
    light.reload()
    light.wait_for_selector("html[data-ready]")
    assert background(light) == background(dark)  # remembered


CONTRAST = """([names, theme]) => {
    document.documentElement.dataset.theme = theme;
    const probe = document.createElement("i");
    document.body.append(probe);
    const luminance = (text) => {
        const [red, green, blue] = text.match(/[0-9.]+/g).slice(0, 3).map((value) => {
            const part = value / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const shown = (colour) => {
        probe.style.color = colour;
        return luminance(getComputedStyle(probe).color);
    };
    const ink = shown("var(--frame-ink)");
    return names.map((name) => {
        const paper = shown(`hsl(var(--${name}))`);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    });
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_can_be_read_on_every_colour(open_page, program_page, theme):
    page = open_page(program_page)
    names = ["own", "site-packages", "stdlib", "importlib", "other", "grew", "shrank", "same"]
    contrasts = dict(zip(names, page.evaluate(CONTRAST, [names, theme]), strict=True))
    assert {name: value for name, value in contrasts.items() if value < 4.5} == {}


def test_narrow_windows(open_page, program_page):
    page = open_page(program_page, viewport={"width": 380, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert hover_row(page, 1) == "<module>"


def test_the_page_may_not_use_the_network(open_page, program_page):
    page = open_page(program_page)
    refused = page.evaluate(
        """async () => {
            const refused = new Promise((resolve) =>
                document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective)));
            const image = new Image();
            image.src = "https://example.invalid/x.png";
            return refused;
        }"""
    )
    assert refused == "img-src"
    page.wait_for_timeout(200)
    assert [text for text in open_page.complaints if not text.startswith(("error: Loading", "request:"))] == []
    open_page.complaints.clear()


def test_inside_another_page(browser, program_page, tmp_path):
    """As a notebook shows it: in a frame that has neither an address nor storage."""
    page_text = html.escape(program_page.read_text(), quote=True)
    outer = tmp_path / "outer.html"
    outer.write_text(
        "<!doctype html><title>outer</title>"
        f'<iframe sandbox="allow-scripts" style="width: 1100px; height: 900px" srcdoc="{page_text}"></iframe>'
    )
    complaints = []
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.goto(outer.as_uri())
    inner = page.frame_locator("iframe")
    inner.locator("html[data-ready]").wait_for(state="attached")
    assert inner.locator("#path button").count() == 1
    box = inner.locator("#canvas").bounding_box()
    page.mouse.click(box["x"] + 12, box["y"] + 2 * ROW + ROW // 2)
    inner.locator("#path button").nth(2).wait_for()
    inner.locator("#view button[data-value=inverted]").click()
    inner.locator("#view button[data-value=inverted][aria-checked=true]").wait_for()
    inner.locator("#search").fill("decode")
    inner.locator("#matched", has_text="%").wait_for()
    inner.locator("#path button").first.click()
    inner.locator("#path button").nth(1).wait_for(state="detached")
    inner.locator("#theme").click()
    page.close()
    assert complaints == []
