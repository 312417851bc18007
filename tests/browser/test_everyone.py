"""Every page of the navigation, for every group: no barrier that axe finds, nothing in the console.

Each group sees its pages in one theme, width and language, and together they see each; `make
proofs` opens every page in all of them.
"""

import pytest

from core.deeds import PeopleGroup
from tests.browser.barriers import DESK, PHONE, walk

LOOKS = {
    PeopleGroup.BOARD: ("light", DESK, "en"),
    PeopleGroup.HR: ("dark", PHONE, "zh-hans"),
    PeopleGroup.REVIEWER: ("dark", DESK, "en"),
    PeopleGroup.OBSERVER: ("light", PHONE, "zh-hans"),
}


@pytest.mark.parametrize("group", [*PeopleGroup])
def test_every_page_has_no_barrier_and_no_error(browser, live_server, company, group):
    theme, size, language = LOOKS[group]
    wrong = walk(browser, live_server.url, company, group, [(theme, size)], language)
    assert wrong == {}


class TestTheKeyboard:
    def test_reaches_the_main_area_in_two_tabs(self, enter):
        page = enter(PeopleGroup.BOARD)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#content') !== null")
        assert page.locator("main, [role=main]").count() == 1
