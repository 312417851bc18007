"""No page in Chinese shows English: every table, and the pages that belong to none."""

from itertools import chain

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.utils import timezone

from core.permissions import PeopleGroup
from ledger.sealer import seal_events
from orgchart.models import ContactRule
from tests.admin.english import english_on, known_texts
from tests.admin.places import addresses_of, addresses_of_the_site, change_page
from tests.browser.day import day_of
from tests.browser.task_week import work
from tests.company import load_company
from tests.governance.cases.world import Play

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9"}


@pytest.fixture
def everything(company):
    """A day of one company, a week of another's tasks, and a paused case of a third."""
    ids = day_of(company)
    work(load_company("dev-team"))
    case = Play(load_company("constitution"), request="Greet by name", title="Greeting")
    case.to("IMPLEMENTATION")
    for number in range(3):
        case.submit("IMPLEMENTATION")
        case.submit("REVIEW", "REJECTED")
        if number < 2:
            case.decide("CONTINUE")
    seal_events(now=timezone.now())
    return ids


def test_tables_show_no_english(board, everything):
    models = [m for room in settings.ROOMS for m in apps.get_app_config(room).get_models()]
    shown = [m for m in [*models, User, Group] if m in admin.site._registry]
    assert_chinese(board, chain.from_iterable(addresses_of(model) for model in shown))


def test_other_pages_show_no_english(board, everything):
    assert_chinese(board, addresses_of_the_site())


def test_previews_of_changes_show_no_english(board, company):
    rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
    known = known_texts()
    sent = {
        "types": ["info", "staffing_request"],
        "relation": "any",
        "reason": "让两位经理一起规划。",
        "seen_version": company.organisation.policy_version,
    }
    answer = board.post(change_page(rule), sent, **CHINESE)
    assert "hr_manager" in answer.content.decode()
    assert english_on(answer.content.decode(), known) == []


def test_other_groups_first_pages_show_no_english(sign_in, everything):
    for group in (*PeopleGroup, None):
        assert_chinese(sign_in(group), ["/admin/"])


def test_english_would_be_found(board, company):
    """The same pages in English: the check sees what it looks for."""
    known = known_texts()
    for address in ("/admin/", "/admin/orgchart/agent/", "/admin/explain/"):
        found = english_on(board.get(address).content.decode().replace('lang="en"', "", 1), known)
        assert len(found) > 30, (address, found)


def assert_chinese(client, addresses):
    """Every page that opens is in Chinese, except for data."""
    known, left, opened = known_texts(), [], 0
    for address in addresses:
        answer = client.get(address, **CHINESE)
        if answer.status_code == 200:
            opened += 1
            html = answer.content.decode()
            assert "<html" not in html or '<html lang="zh-hans"' in html, address
            left += [f"{address}: {text[:200]}" for text in english_on(html, known)]
    assert opened
    assert not left, "\n".join(left)
