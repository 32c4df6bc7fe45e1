"""The page says what to fix: lines of the program first, told apart by their source, on screens of every width."""

import json
import subprocess
import sys

import pytest
import reports
from heapledger.command import _text
from looking import choose, click_row, fixes, hover_row, names_down, path, rows, totals, wait_for_table, wait_until

WIDTHS = [(1400, 900), (1024, 768), (400, 800)]
SCREENS = [(*size, scheme) for size in WIDTHS for scheme in ("light", "dark")]
JOINED, UNKNOWN = "[cut stacks, joined by a guess]", "[cut stacks, callers not kept]"


def ask(*arguments):
    """The answer of a command, from JSON."""
    line = [sys.executable, "-P", "-m", "heapledger", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(line, capture_output=True, check=True, timeout=60).stdout)


def open_menu(page, menu):
    page.click(f"{menu} summary")
    page.wait_for_timeout(100)  # it moves into the window when it is open


def visible(page, selector):
    """Whether all of these elements are inside of the window from left to right, and have a size."""
    return page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].every((one) => {
            const box = one.getBoundingClientRect();
            return box.width > 0 && box.height > 0 && box.left >= 0 && box.right <= innerWidth + 0.5;
        })""",
        selector,
    )


@pytest.fixture(params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[2]}")
def screen(request):
    """Options of open_page for a width and a scheme."""
    width, height, scheme = request.param
    return {"viewport": {"width": width, "height": height}, "color_scheme": scheme}


def gaps(page, selector):
    """How far apart neighbours in a line are, in each of these elements."""
    return page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].flatMap((one) => {
            const boxes = [...one.children].map((child) => {
                const range = document.createRange();
                range.selectNodeContents(child);  // the text, which may be wider than its element
                return range.getBoundingClientRect();
            }).filter((box) => box.width > 0);
            return boxes.slice(1).map((box, at) => [boxes[at], box])
                .filter(([first, second]) => second.top < first.bottom && first.top < second.bottom)
                .map(([first, second]) => second.left - first.right);
        })""",
        selector,
    )


def test_the_box_at_the_top_says_what_to_fix(open_page, shop, shop_page, screen):
    page = open_page(shop_page, **screen)
    assert page.locator("#fix-title").text_content() == "Lines of your code that hold most"
    wanted = ask("summary", shop / "shop.hlsnap")["lines"]["live"]["lines"]
    whole = ask("summary", shop / "shop.hlsnap")["moments"]["live"]["size"]
    found = fixes(page)
    assert len(found) == len(wanted) == 5
    for cells, line in zip(found, wanted, strict=True):
        size, share, place, source, count = cells
        assert (size, share) == (_text.size(line["size"]), f"{100 * line['size'] / whole:.1f}%")
        assert place == f"{shop.name}/shop.py:{line['line']}" and source == line["source"] != ""
        assert count.startswith(f"{line['count']:,} block") and count.endswith(" on average")
    assert "KEPT.append(bytearray(300_000 * number))" in found[0]
    assert page.locator("#fix-rest").text_content().startswith("imports: ")
    assert visible(page, "#fix li button > *")
    box, first = page.locator("#fix").bounding_box(), page.locator("#fix li b").first.bounding_box()
    assert box["y"] < first["y"] < screen["viewport"]["height"] - 100  # above the fold


def test_everything_is_inside_the_window(open_page, shop_page, shop_growth_page, series_page, screen):
    for made in (shop_page, shop_growth_page, series_page):
        page = open_page(made, **screen)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
        assert visible(page, "#fix li button > *, #totals > *, [role=radio], #hide, #search, #graph, #legend > *")
        assert visible(page, "#table th.name, #table td.name, #table td.name button")
        assert min(gaps(page, "#fix li button")) >= 4


def test_a_click_goes_on_from_there(open_page, shop_page):
    page = open_page(shop_page)
    page.click("#fix li:first-child button")
    assert path(page)[-1] == "price" and "load" in path(page)
    assert hover_row(page, 0) == "price"
    wait_for_table(page, "price")
    assert "through price" in page.locator("#table-hint").text_content()


def test_peaks_and_blocks_have_lines_of_their_own(open_page, shop_page):
    page = open_page(shop_page)
    choose(page, "moment", "peak")
    assert page.locator("#fix-title").text_content() == "Lines of your code that held most at the peak"
    choose(page, "measure", "blocks")
    (first, *_) = fixes(page)
    assert "json.loads" in first[3] and first[0].replace(",", "").isdigit()


def test_growth_is_seen_at_once(open_page, shop, shop_growth_page, screen):
    page = open_page(shop_growth_page, **screen)
    assert page.locator("#fix-title").text_content() == "Lines of your code that have grown most"
    (first, *_) = ask("diff", shop / "before.hlsnap", shop / "after.hlsnap", "--mine")["groups"]
    size, share, place, source, count = fixes(page)[0]
    assert size == f"+{_text.size(first['size_diff'])}" and place.endswith(f"shop.py:{first['line']}")
    assert source == 'KEPT.append("order %d" % number * 100)' and float(share[:-1]) > 90
    assert count == f"+{first['count_diff']} blocks"
    # The widest frame of the graph is that line's, from one edge to the other.
    down = names_down(page)
    edge = screen["viewport"]["width"] - 80
    assert "grow" in down and hover_row(page, down.index("grow"), edge) == "grow"
    (first, *_) = rows(page)
    assert first[0].startswith("+") and first[-1].startswith("grow")


def test_only_changes_are_shown(open_page, shop_growth_page):
    page = open_page(shop_growth_page)
    assert page.locator("#changes [aria-checked=true]").text_content() == "Changes only"
    changed = rows(page)
    assert 0 < len(changed) < 10 and all(row[0] != "0 B" or row[3] != "0 B" for row in changed)
    assert changed[0][0].startswith("+") and changed[0][-1].startswith("grow")
    assert "changed" in page.locator("#table-hint").text_content()
    assert "price" not in names_down(page)
    choose(page, "changes", "all")
    wait_until(page, "() => document.querySelectorAll('#table tbody tr').length >= 10")
    assert "changes=all" in page.evaluate("location.hash")
    assert any(row[0] == row[3] == "0 B" for row in rows(page))
    page.keyboard.press("c")
    wait_until(page, "() => document.querySelectorAll('#table tbody tr').length < 10")


# --- folding ---


def test_imports_are_one_box(open_page, shop, shop_page):
    page = open_page(shop_page)
    (imports,) = [row for row in rows(page) if row[-1].startswith("imports")]
    (group,) = [one for one in ask("top", shop / "shop.hlsnap", "-n", 1000)["groups"] if "folded" in one]
    assert imports[0] == imports[2] == _text.size(group["size"])
    assert not any("<frozen importlib" in row[-1] for row in rows(page))
    page.click("#table button:text-is('imports')")
    assert path(page) == ["all", "imports"]
    wait_for_table(page, "<frozen importlib")
    click_row(page, 1)
    assert len(path(page)) == 3
    page.keyboard.press("Escape")
    choose(page, "fold", "nothing")
    wait_for_table(page, "<frozen importlib")
    assert not any(row[-1].startswith("imports") for row in rows(page))


@pytest.mark.parametrize("view", ["icicle", "inverted"])
def test_graph_table_and_commands_agree_on_my_code(open_page, shop, shop_page, view):
    page = open_page(shop_page, f"#fold=libraries&group=line&view={view}")
    wanted = ask("top", shop / "shop.hlsnap", "--mine", "-n", 1000)["groups"]
    found = {row[-1].split()[1]: row[0] for row in rows(page) if row[0] != "0 B" and "shop.py:" in row[-1]}
    lines = {f"{one['file']}:{one['line']}": _text.size(one["size"]) for one in wanted if "file" in one}
    assert found == lines
    (imports,) = [row[0] for row in rows(page) if row[-1].startswith("imports")]
    assert [imports] == [_text.size(one["size"]) for one in wanted if one.get("folded") == "imports"]
    assert not any("json/" in row[-1] for row in rows(page))
    assert all(name in ("all", "<module>", "main", "load", "price", "deep", "imports") for name in names_down(page))
    everything = totals(page)
    choose(page, "fold", "nothing")
    assert totals(page) == everything


def test_my_code_by_key_and_from_the_command(open_page, shop, shop_page):
    page = open_page(reports.make_page(shop / "mine.html", shop / "shop.hlsnap", "--mine"))
    assert page.locator("#fold [aria-checked=true]").text_content() == "My code"
    page.keyboard.press("o")
    assert page.locator("#fold [aria-checked=true]").text_content() == "All code"
    assert "fold=imports" in page.evaluate("location.hash")


def test_hidden_frames_are_their_callers_in_the_table_too(open_page, program_page):
    page = open_page(program_page, "#hide=site-packages,stdlib")
    whole = rows(open_page(program_page))
    (scan,) = [row for row in whole if row[-1].startswith("scan")]
    (parse,) = [row for row in rows(page) if row[-1].startswith("parse")]
    assert parse[0] == parse[2] and parse[0] >= scan[0] and not any(row[-1].startswith("scan") for row in rows(page))


# --- cut stacks ---


def test_cut_stacks_are_joined_visibly(open_page, shop_page):
    page = open_page(shop_page)
    page.fill("#search", "KEPT.append(bytearray(60_000))")
    page.fill("#search", "")
    names = [row[-1] for row in rows(page)]
    assert any(name.startswith(JOINED) for name in names)
    page.click(f"#table button:text-is('{JOINED}')")
    assert "%" in page.locator("#matched").text_content()
    page.fill("#search", "")
    page.locator("#graph").focus()
    for _ in range(30):
        page.keyboard.press("ArrowDown")
        if "deep" in page.locator("#focused").text_content():
            break
    roots = page.evaluate("document.getElementById('focused').getAttribute('aria-setsize')")
    assert int(roots) < 10


def test_a_joint_says_that_it_is_a_guess(open_page, tmp_path):
    import heapledger

    frames = [("/srv/app.py", line) for line in (1, 2, 3, 4, 5, 6)]
    traces = [(0, 100, tuple(frames[2::-1]), 3), (0, 5000, tuple(frames[:1:-1]), 6)]
    heapledger.Snapshot(traces, 4).dump(tmp_path / "cut.hlsnap", format="hlsnap")
    page = open_page(reports.make_page(tmp_path / "cut.html", tmp_path / "cut.hlsnap"))
    assert names_down(page)[:5] == ["all", "srv/app.py", "srv/app.py", JOINED, "srv/app.py"]
    hover_row(page, 3)
    assert "is a guess" in page.locator("#tip").inner_text()
    # No line above a joint is charged for what is below it.
    assert [(line[0], line[2]) for line in fixes(page)] == [("4.9 KiB", "srv/app.py:6"), ("100 B", "srv/app.py:3")]


# --- source ---


def test_boxes_of_one_function_are_told_apart(open_page, shop, shop_page, screen):
    page = open_page(shop_page, "#group=line", **screen)
    wait_for_table(page, "KEPT.append(json.loads(text))")
    down = names_down(page)
    at = down.index("load")
    tips = set()
    for x in range(20, screen["viewport"]["width"] // 2, 20):
        hover_row(page, at, x)
        tips.add(page.locator("#tip code").text_content() if page.locator("#tip code").count() else "")
    assert {"price(1); price(1)", "price(2)"} <= tips
    hover_row(page, at)
    tip = page.locator("#tip").inner_text()
    assert " on average" in tip and "blocks\t" in tip and "bytes\t" in tip
    page.fill("#search", "json.loads(text)")
    assert "%" in page.locator("#matched").text_content()


@pytest.mark.parametrize("option", ["--confidential", "--no-source"])
def test_source_can_be_left_out(open_page, shop, option):
    made = reports.make_page(shop / f"page{option}.html", shop / "shop.hlsnap", option)
    page = open_page(made, "#group=line")
    assert page.locator("#table code").count() == 0
    assert "KEPT" not in page.locator("body").inner_text()
    assert len(fixes(page)) == 5 and JOINED in page.locator("body").inner_text()


# --- screens ---


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("group", ["function", "line"])
def test_narrow_tables_keep_the_function(open_page, shop_page, shop_growth_page, scheme, group):
    for made in (shop_page, shop_growth_page):
        page = open_page(made, f"#group={group}", viewport={"width": 400, "height": 800}, color_scheme=scheme)
        assert visible(page, "#table tbody td.name, #table thead th.name")
        widths = page.evaluate("[...document.querySelectorAll('#table td.name')].map((cell) => cell.clientWidth)")
        assert min(widths) >= 150
        heights = page.evaluate("[...document.querySelectorAll('#table tbody tr')].map((row) => row.clientHeight)")
        assert max(heights) <= 36  # one line
        heads = page.evaluate(
            """[...document.querySelectorAll("#table th")].filter((one) => one.clientWidth > 0)
                .map((one) => [one.clientWidth, one.firstChild.scrollWidth])"""
        )
        assert [one for one in heads if one[1] > one[0]] == []
        assert not page.locator("#facts").is_visible()
        page.click("#about summary")
        assert page.locator("#facts").is_visible()


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1366, 768), (1280, 720)])
def test_the_table_begins_above_the_fold(open_page, shop_page, width, height):
    page = open_page(shop_page, viewport={"width": width, "height": height})
    assert page.locator("#facts").is_visible()
    head = page.locator("#table thead").bounding_box()
    assert head["y"] + head["height"] <= height
    if page.locator("#taller").is_visible():
        page.click("#taller")
        assert page.locator("#graph").evaluate("(graph) => graph.scrollHeight - graph.clientHeight") <= 1
        page.click("#taller")
    choose(page, "fold", "libraries")
    content = page.evaluate("document.getElementById('graph-space').offsetHeight")
    assert page.locator("#graph").bounding_box()["height"] <= content + 4  # as high as its content


def test_bars_do_not_touch_their_numbers(open_page, shop_page, shop_growth_page):
    for made in (shop_page, shop_growth_page):
        page = open_page(made)
        gaps = page.evaluate(
            """[...document.querySelectorAll("#table .share")].map((cell) =>
                cell.lastChild.getBoundingClientRect().left - cell.firstChild.getBoundingClientRect().right)"""
        )
        assert gaps and min(gaps) >= 8


def test_resident_memory_is_explained(open_page, shop, shop_page):
    page = open_page(shop_page)
    resident = ask("summary", shop / "shop.hlsnap")["resident"]
    assert totals(page)["Resident memory"] == _text.size(resident["rss"])
    said = page.locator("#totals").inner_text()
    assert f"{_text.size(resident['parts']['tables'])} heapledger's own tables" in said
    open_menu(page, "#resident")
    listed = page.locator("#resident .menu-body").inner_text()
    assert "its own tables, which go away when tracing stops" in listed and "mapped files" in listed
    assert visible(page, "#resident .menu-body")
    page.set_viewport_size({"width": 400, "height": 800})
    page.click("#resident summary")
    open_menu(page, "#resident")
    assert visible(page, "#resident .menu-body")
    page.keyboard.press("Escape")
    assert not page.locator("#resident .menu-body").is_visible()
    choose(page, "moment", "peak")  # the system was asked at another moment
    assert "Resident memory" not in totals(page)


def test_resident_memory_of_a_capture_that_was_saved_later(open_page, shop, tmp_path):
    script = (
        "import heapledger, sys, time\nheapledger.start()\ncapture = heapledger.take_capture()\ntime.sleep(1.2)\n"
        "kept = bytearray(50_000_000)\ncapture.dump(sys.argv[1])\n"
    )
    reports.run("-c", script, tmp_path / "later.hlsnap")
    page = open_page(reports.make_page(tmp_path / "later.html", tmp_path / "later.hlsnap"))
    page.click("#resident summary")
    listed = page.locator("#resident .menu-body").inner_text()
    assert "the rest" in listed and "mapped files" not in listed
    number, unit = totals(page)["Resident memory"].split()
    assert unit == "MiB" and float(number) < 45


# --- details ---


def outline(page, selector):
    return page.evaluate("(one) => getComputedStyle(document.querySelector(one)).outlineStyle", selector)


def test_the_dialog_of_keys(open_page, shop_page):
    page = open_page(shop_page)
    page.click("#help-button")
    style = "(one) => getComputedStyle(document.querySelector(one)).borderRadius"
    assert page.evaluate(style, "#help button") == page.evaluate(style, "#theme") != "0px"
    page.keyboard.press("Escape")
    wait_until(page, "document.activeElement.id !== 'help-button'")  # the dialog is closed a moment later
    assert outline(page, "#help-button") == "none"
    page.fill("#search", "json")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "graph" and outline(page, "#graph") == "none"


def test_long_names_are_cut_where_they_say_least(open_page, tmp_path):
    import heapledger

    folder = "/home/somebody/" + "a-rather-long-name-of-a-folder/" * 5
    function = "NamespacesThatAreLong.start_an_element_handler_with_a_long_name"
    space = {}
    exec(compile("def f(kept):\n    kept.append(bytearray(9000))\n", folder + "orders.py", "exec"), space)
    space["f"].__code__ = space["f"].__code__.replace(co_name=function, co_qualname=function)
    kept = []
    heapledger.start(5)
    space["f"](kept)
    heapledger.take_capture().dump(tmp_path / "long.hlsnap")
    heapledger.stop()
    made = reports.make_page(tmp_path / "long.html", tmp_path / "long.hlsnap")
    for width in (1024, 400):
        page = open_page(made, viewport={"width": width, "height": 800})
        place = page.locator("#fix .where").first
        assert place.text_content().endswith("a-rather-long-name-of-a-folder/orders.py:2")
        assert place.get_attribute("title") == f"{folder}orders.py:2"
        assert visible(page, "#table td.name button")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1400, 1024, 400])
def test_menus_open_inside_the_window(open_page, shop_page, width):
    page = open_page(shop_page, viewport={"width": width, "height": 800})
    for menu in ("#hide", "#resident"):
        open_menu(page, menu)
        assert visible(page, f"{menu} .menu-body")


def test_kinds_have_one_name(open_page, shop_page):
    page = open_page(shop_page)
    page.click("#hide summary")
    listed = page.locator("#hide-list").inner_text().splitlines()
    assert "other" not in listed and len(set(listed)) == len(listed)
    heights = page.evaluate("[...document.querySelectorAll('#hide-list label')].map((one) => one.clientHeight)")
    assert max(heights) <= 34
