"""A browser for all tests, and pages in which nothing may go wrong: no error, no warning, no request to anywhere.

`make test-browser` installs what drives the browser; without it a plain `pytest tests` leaves this folder out.
"""

import importlib.util

import looking
import pytest
import reports

if importlib.util.find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def browser():
    with looking.started_browser() as started:
        yield started


@pytest.fixture
def open_page(browser):
    """open_page(path or address, hash): a page that is ready. What it complains of fails the test."""
    complaints, contexts = [], []

    def open_page(where, fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 1000}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        address = where if isinstance(where, str) else where.as_uri()
        allowed = address.partition("?")[0]
        page.on(
            "request",
            lambda request: request.url.startswith(allowed) or complaints.append(f"request: {request.url}"),
        )
        looking.go_to(page, address + fragment)
        return page

    open_page.complaints = complaints
    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def program(folder):
    reports.traced(folder, "moments")
    return folder / "program.hlsnap"


@pytest.fixture(scope="session")
def program_page(folder, program):
    return reports.make_page(folder / "program.html", program)


@pytest.fixture(scope="session")
def series(folder):
    reports.traced(folder, "series")
    return [folder / f"step{number}.hlsnap" for number in range(reports.STEPS)]


@pytest.fixture(scope="session")
def series_page(folder, series):
    return reports.make_page(folder / "series.html", *series)


@pytest.fixture(scope="session")
def grown_page(folder, series):
    return reports.make_page(folder / "grown.html", series[0], series[3])


@pytest.fixture(scope="session")
def shrunk_page(folder, series):
    return reports.make_page(folder / "shrunk.html", series[3], series[5])


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A folder with a program, shop.py, and captures of it."""
    return reports.run_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def shop_page(shop):
    return reports.make_page(shop / "shop.html", shop / "shop.hlsnap")


@pytest.fixture(scope="session")
def shop_growth_page(shop):
    return reports.make_page(shop / "growth.html", shop / "before.hlsnap", shop / "after.hlsnap")
