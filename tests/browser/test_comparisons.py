"""Differences of two captures, and series."""

from looking import address, choose, click_row, colour_at, hover_row, names_down, rows, totals, wait_for_table

EDGE = 1195  # right of what changed: little pieces of the interpreter's


def test_growth_is_orange_and_signed(open_page, grown_page):
    page = open_page(grown_page)
    assert page.locator("h1").text_content() == "step0.hlsnap → step3.hlsnap"
    assert totals(page)["Change"].startswith("+")
    down = names_down(page)
    assert down[:3] == ["all", "<module>", "trace_series"] and "scan" in down
    red, green, blue = colour_at(page, down.index("scan"), 3)
    assert red > green > blue
    first = rows(page)[0]
    assert first[0].startswith("+") and first[-1].startswith("scan")
    hover_row(page, down.index("scan"))
    tip = page.locator("#tip").inner_text()
    assert "before" in tip and "after" in tip and "change\t+" in tip


def test_shrinkage_is_blue_and_signed(open_page, shrunk_page):
    page = open_page(shrunk_page)
    assert totals(page)["Change"].startswith("−")
    down = names_down(page)
    red, green, blue = colour_at(page, down.index("scan"), 3)
    assert blue > green > red
    page.click("#table thead th:nth-child(1) button")
    assert rows(page)[0][0].startswith("−") and rows(page)[0][-1].startswith("scan")


def test_widths_are_by_the_larger_side(open_page, shrunk_page, grown_page):
    """What vanished is as wide as it was: the frame that held nearly everything still does."""
    for made in (shrunk_page, grown_page):
        page = open_page(made, "#changes=all")
        row = names_down(page).index("scan")
        assert hover_row(page, row, 1000) == "scan"


def test_differences_have_every_view(open_page, grown_page):
    page = open_page(grown_page)
    choose(page, "view", "inverted")
    assert names_down(page)[1] == "scan"
    choose(page, "measure", "blocks")
    assert totals(page)["Change"].startswith("+")
    choose(page, "moment", "peak")
    page.fill("#search", "scan")
    assert "%" in page.locator("#matched").text_content()
    click_row(page, 1)
    wait_for_table(page, "scan")


def drag(page, start, end):
    box = page.locator("#timeline").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def test_a_series_has_a_timeline(open_page, series_page):
    page = open_page(series_page)
    assert page.locator("#timeline svg .curve").count() == 1
    assert "Alive at the end" in totals(page)
    drag(page, 0.02, 0.98)
    assert "from=0" in address(page)
    assert "Change" in totals(page)
    drag(page, 0.99, 0.5)  # backwards is the same range
    assert "from=" in address(page) and "to=" not in address(page)
    page.click("#timeline-clear")
    assert "from=" not in address(page) and "Alive at the end" in totals(page)


def test_a_range_of_a_series_shows_what_grew_in_it(open_page, series_page, grown_page):
    whole = open_page(series_page, "#from=0&to=3")
    pair = open_page(grown_page)
    assert totals(whole) == totals(pair)
    assert rows(whole) == rows(pair)


def test_each_capture_of_a_series_is_itself(open_page, series_page, folder, series):
    import reports

    for number in (1, 5):
        alone = open_page(reports.make_page(folder / f"alone{number}.html", series[number]))
        within = open_page(series_page, f"#to={number}")
        assert totals(alone) == totals(within)
        assert rows(alone) == rows(within)


def test_the_timeline_by_keyboard(open_page, series_page):
    page = open_page(series_page)
    page.focus("#timeline")
    page.keyboard.press("ArrowLeft")
    assert "to=4" in address(page)
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    slider = page.locator("#timeline")
    assert " to " in slider.get_attribute("aria-valuetext")
    assert "from=" in address(page)
