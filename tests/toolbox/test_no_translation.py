"""No call of an agent looks a translation up: what machines read is English, and costs nothing."""

import pytest
from django.utils import translation
from django.utils.translation import gettext, trans_real

from tests.browser.day import play
from tests.company import load_company


@pytest.fixture
def looked_up(monkeypatch):
    """The texts that were looked up since."""
    found = []
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        known = getattr(trans_real, name)

        def counted(*texts, known=known):
            found.append(texts)
            return known(*texts)

        monkeypatch.setattr(translation._trans, name, counted, raising=False)
    return found


def test_a_look_up_would_be_seen(looked_up):
    gettext("Mail")
    assert looked_up == [("Mail",)]


def test_a_day_of_calls_looks_nothing_up(db, looked_up):
    company = load_company("nexus")
    looked_up.clear()
    play(company)
    company.call("backend_worker", "send_mail", to="ceo", type="info", subject="s", body="b")
    assert looked_up == []
