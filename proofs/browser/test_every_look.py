"""Every page of every group, in English and Chinese, on a desk and on a phone, light and dark.

A language is seen in two looks of the four, so that each theme meets each width (colours depend on
both), each width each language (what fits), and each theme each language.
"""

import pytest

from core.permissions import PeopleGroup
from tests.browser.barriers import DESK, PHONE, Window
from tests.browser.eyes import CHROMIUM, has_browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not has_browser(), reason=f"no browser at {CHROMIUM}"),
]

LOOKS = {
    "en": (("light", DESK), ("dark", PHONE)),
    "zh-hans": (("dark", DESK), ("light", PHONE)),
}


@pytest.mark.parametrize("language", [*LOOKS])
@pytest.mark.parametrize("group", [*PeopleGroup])
def test_has_no_barrier_and_no_error(browser, live_server, company, group, language):
    window = Window(browser, live_server.url, company, group, language)
    assert window.walk(window.pages, LOOKS[language]) == {}
