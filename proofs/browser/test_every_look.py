"""Every page of every group, light and dark, on a desk and on a phone, in English and Chinese."""

import pytest

from core.deeds import PeopleGroup
from tests.browser.barriers import EVERY_LOOK, Window
from tests.browser.eyes import CHROMIUM, has_browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not has_browser(), reason=f"no browser at {CHROMIUM}"),
]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("group", [*PeopleGroup])
def test_has_no_barrier_and_no_error(browser, live_server, company, group, language):
    window = Window(browser, live_server.url, company, group, language)
    assert window.walk(window.pages, EVERY_LOOK) == {}
