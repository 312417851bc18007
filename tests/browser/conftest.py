"""A served site, a company after a day of work, and a browser of this machine."""

import os

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.barriers import DESK
from tests.browser.day import day_of
from tests.browser.eyes import CHROMIUM, complaints_of, enter_signed_in, has_browser, make_people
from tests.company import load_company

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # the driver runs a loop in this thread


def pytest_collection_modifyitems(items):
    """Mark everything here, and skip it where there is no browser."""
    for item in items:
        if "tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)
            if not has_browser():
                item.add_marker(pytest.mark.skip(reason=f"no browser at {CHROMIUM}"))


@pytest.fixture(scope="module")
def browser():
    """The browser that is installed; root needs it without its own sandbox.

    Ended with each file: while its driver runs, no other test can run a loop in this thread.
    """
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def window(browser):
    """The page of all tests of a file: what it has loaded for one test it need not load again."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def page(window):
    """A person's own window: of the test before it has no page, no cookie and no choice."""
    window.set_viewport_size(DESK)
    window.emulate_media(color_scheme="light")
    window.set_default_timeout(20_000)
    yield window
    if window.url.startswith("http"):
        window.evaluate("localStorage.clear(); sessionStorage.clear()")
    window.goto("about:blank")
    window.context.clear_cookies()


@pytest.fixture
def context(page):
    return page.context


@pytest.fixture
def company(transactional_db):
    made = load_company("nexus")
    made.ids = day_of(made)
    make_people()
    return made


@pytest.fixture
def outside(context, live_server):
    """Every address the browser asks for that is not ours; must stay empty."""
    asked = []
    context.on(
        "request",
        lambda r: None if r.url.startswith((live_server.url, "data:")) else asked.append(r.url),
    )
    return asked


@pytest.fixture
def complaints(page):
    return complaints_of(page)


@pytest.fixture
def enter(page, live_server, company):
    """Sign in as somebody of a group; the page, at the dashboard."""

    def entered(desk):
        enter_signed_in(page, live_server.url, desk)
        return page

    return entered
