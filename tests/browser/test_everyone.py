"""Every page of the navigation: no barrier that axe finds, nothing in the console.

The groups share the pages that they see, each in one theme, width and language; `make proofs` shows
every page to every group, in both of each.
"""

from itertools import chain

import pytest
from django.utils import timezone

from core.actions import Action
from core.events import Event
from core.permissions import PeopleGroup
from ledger.services import record_alone
from tests.browser.barriers import DESK, PHONE, Window

LOOKS = {
    PeopleGroup.BOARD: ("light", DESK, "en"),
    PeopleGroup.HR: ("dark", PHONE, "zh-hans"),
    PeopleGroup.REVIEWER: ("dark", DESK, "en"),
    PeopleGroup.OBSERVER: ("light", PHONE, "zh-hans"),
}


def share(pages):
    """Each page for one group that sees it: the one that has the fewest so far."""
    shares = {group: [] for group in pages}
    for page in dict.fromkeys(chain(*pages.values())):
        seers = [group for group in pages if page in pages[group]]
        shares[min(seers, key=lambda group: len(shares[group]))].append(page)
    return shares


def test_every_page_has_no_barrier_and_no_error(browser, live_server, company):
    windows = {
        group: Window(browser, live_server.url, company, group, language)
        for group, (_, _, language) in LOOKS.items()
    }
    shares = share({group: window.pages for group, window in windows.items()})
    assert min(map(len, shares.values())) > 5
    wrong = {group: windows[group].walk(shares[group], [LOOKS[group][:2]]) for group in windows}
    assert not any(wrong.values()), wrong


class TestTheKeyboard:
    def test_reaches_the_main_area_in_two_tabs(self, enter):
        page = enter(PeopleGroup.BOARD)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#content') !== null")
        assert page.locator("main, [role=main]").count() == 1


class TestTheLayout:
    @pytest.mark.parametrize("language", ["en", "zh-hans"])
    def test_keeps_every_item_of_the_navigation_on_one_line(self, enter, live_server, language):
        page = enter(PeopleGroup.BOARD)
        chosen = {"name": "nexus_language", "value": language, "url": live_server.url}
        page.context.add_cookies([chosen])
        page.goto(f"{live_server.url}/admin/")
        heights = page.locator("#nav-sidebar-apps a").evaluate_all(
            "links => links.map(link => [link.textContent.trim(), link.offsetHeight])"
        )
        lowest = min(height for _, height in heights)
        assert [name for name, height in heights if height > lowest + 8] == []

    def test_of_an_event_fits_a_phone_and_shows_where_one_is(self, enter, company, live_server):
        page = enter(PeopleGroup.BOARD)
        hired = record_alone(
            Event(
                action=Action.AGENT_HIRED, actor="human:ada", at=timezone.now(),
                subject="agent:" + "x" * 60, details={"sha256": "9" * 64, "rows": ["word " * 60]},
            )
        )  # fmt: skip
        page.set_viewport_size({"width": 390, "height": 900})
        page.goto(f"{live_server.url}/admin/ledger/event/{hired}/change/")
        width = "document.documentElement.scrollWidth"
        assert page.evaluate(width) <= 390
        crumbs = page.locator(".nx-path h1 a:visible")
        assert crumbs.all_inner_texts() == ["Events", f"{hired} Agent hired"]
        assert crumbs.first.evaluate("link => link.scrollWidth <= link.clientWidth + 1")

    def test_of_a_title_leaves_no_gap(self, enter, company, live_server):
        page = enter(PeopleGroup.HR)
        page.goto(
            f"{live_server.url}/admin/orgchart/agent/add/?organisation={company.organisation.id}"
        )
        assert page.locator("h1.nx-title").bounding_box()["height"] < 60
