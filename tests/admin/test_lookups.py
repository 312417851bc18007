"""What the address of a table may ask for: the filters the page declares, and nothing else."""

from itertools import cycle, product

import pytest
from django.contrib import admin
from django.contrib.admin import RelatedFieldListFilter, SimpleListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth import get_user_model
from django.contrib.messages.storage import default_storage
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.test import RequestFactory

from core.people import signed_in_as
from core.permissions import PeopleGroup
from nexus_site.console.lookups import DeclaredLookups as Guard
from orgchart.keys import issue_key
from tests.people import join

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
LOOKUPS = ["exact", "in", "isnull", "icontains", "startswith", "gt", "range", "year", "id__exact"]
ODD = ["(", "9" * 40, "\x00"]
EVERYWHERE = ["p", "o", "q", "all", "_facets", "_popup", "_to_field"]
ANSWERED = (DisallowedModelAdminLookup, IncorrectLookupParameters, SuspiciousOperation)


@pytest.fixture
def listed(company, groups, monkeypatch):
    """Builds what a table shows for one query, as somebody of the Board sees it.

    Who that is, is known from before, as in a request that has asked once: thousands are built.
    Django hides a filter of one choice and yet takes its parameters: here all are shown.
    """
    for kind in (RelatedFieldListFilter, SimpleListFilter):
        monkeypatch.setattr(kind, "has_output", lambda self: True)
    user = get_user_model().objects.create_user("ada", is_staff=True)
    join(user)
    user.groups.set([groups[PeopleGroup.BOARD]])
    who = signed_in_as(user.username)

    def made(model, **query):
        request = RequestFactory().get("/", query)
        request.user, request.session, request.signed_in = user, {}, who
        request._messages = default_storage(request)
        with transaction.atomic():
            return admin.site._registry[model].get_changelist_instance(request)

    return made


def offered(shown):
    """The parameters that the page's filters answer to."""
    declared = {str(name) for spec in shown.filter_specs for name in spec.expected_parameters()}
    if shown.date_hierarchy:
        declared |= {f"{shown.date_hierarchy}__{part}" for part in ("year", "month", "day")}
    return sorted(declared)


def keys_of(model, turn):
    """Every column by name, by pattern, and by one look-up more, in turn all of them."""
    for field in model._meta.get_fields():
        yield field.name
        yield f"{field.name}__regex"
        yield f"{field.name}__{next(turn)}"


class TestEveryTable:
    def test_is_filtered_by_what_it_declares_and_by_nothing_else(self, listed):
        turn = cycle(LOOKUPS)
        for model in MODELS:
            declared = offered(listed(model))
            for key in keys_of(model, turn):
                try:
                    listed(model, **{key: "1"})
                except ANSWERED:
                    continue
                assert key in declared, (model._meta.label, key)

    def test_takes_any_value_for_what_it_declares(self, listed):
        for model in MODELS:
            tried = list(product(offered(listed(model)), ODD))
            for key, value in [*tried, *product(EVERYWHERE, ["9" * 40])]:
                try:
                    listed(model, **{key: value})
                except ANSWERED:
                    continue

    def test_is_ours_or_is_guarded_all_the_same(self):
        """Those of libraries too: what guards is the site, not a class somebody must remember."""
        assert [m for m, page in admin.site._registry.items() if not isinstance(page, Guard)] == []


SMUGGLED = [
    ("orgchart/apikey", "digest=a"),
    ("orgchart/apikey", "digest__regex=."),
    ("orgchart/apikey", "digest__contains=a"),
    ("mailroom/mail", "id__regex=("),
    ("contracts/contract", "workspace_scope=a"),
    ("orgchart/mailtyperule", "senders=a"),
    ("tasks/task", "description__regex=a"),
    ("auth/user", "password__startswith=a"),
    ("auth/user", "is_superuser=1"),
    ("mailroom/mail", "nonsense=1"),
]


class TestAPerson:
    def test_is_told_that_this_is_no_filter(self, board, company):
        for address, query in SMUGGLED:
            answer = board.get(f"/admin/{address}/?{query}")
            assert answer.status_code == 400, (address, query)
            page = answer.content.decode()
            assert f"This table is not filtered by “{query.partition('=')[0]}”" in page
            assert f'href="/admin/{address}/"' in page

    def test_is_shown_no_markup_of_what_was_asked(self, board, company):
        asked = {"digest__<script>alert(1)</script>": "1"}
        answer = board.get("/admin/orgchart/apikey/", asked, follow=True)
        assert "<script>alert" not in answer.content.decode()

    def test_is_told_of_odd_values_and_shown_all(self, board, company):
        answer = board.get("/admin/mailroom/mail/?sender__id__exact=x", follow=True)
        assert answer.status_code == 200
        assert "No filter has such a value" in answer.content.decode()

    def test_is_told_of_a_year_that_no_calendar_ends(self, admin_client):
        for query in ["year=9999", "year=9999&attempt_time__month=12", "year=x", "day=1"]:
            address = f"/admin/axes/accessattempt/?attempt_time__{query}"
            assert admin_client.get(address, headers={"host": "127.0.0.1"}).status_code < 500, query

    def test_filters_as_before(self, board, company, now):
        mine, other = company.agent("it_manager"), company.agent("qa_worker")
        for agent in (mine, other):
            issue_key(agent=agent, caller=company.person(PeopleGroup.BOARD), now=now)
        page = board.get(f"/admin/orgchart/apikey/?agent__id__exact={mine.id}&state=good&o=1&p=1")
        assert page.status_code == 200
        assert {key.agent_id for key in page.context_data["cl"].result_list} == {mine.id}


def test_pages_of_choices_have_one_order():
    """Without it, PostgreSQL may show a row on two pages, and another on none."""
    searched = [model for model in MODELS if admin.site._registry[model].search_fields]
    ours = [model for model in searched if not model.__module__.startswith("axes.")]
    assert len(ours) > 10
    unordered = {
        model._meta.label
        for model in ours
        if not (admin.site._registry[model].ordering or model._meta.ordering)
    }
    assert unordered <= {"toolbox.IdempotencyRecord", "toolbox.RateBucket"}, "no choice elsewhere"
