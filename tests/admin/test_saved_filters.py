"""Filters that people keep of their lists: their own only, and never more than they may see."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from core.decision import Code, Denied
from core.permissions import PeopleGroup
from nexus_site.console.saved_filters import filters_in
from orgchart.models import SavedFilter
from orgchart.people.filters import MOST, filters_of, remove_filter, save_filter

MAIL = "/admin/mailroom/mail/"
SAVE = "/admin/filters/"


def keep(client, name="Mine", query="q=tokeniser", table="mailroom.mail"):
    return client.post(SAVE, {"table": table, "name": name, "query": query})


def forget(client, row):
    return client.post(f"{SAVE}{row.id}/remove/")


class TestOnAList:
    def test_is_kept_found_again_and_removed(self, observer, company):
        answer = keep(observer)
        assert answer.url == f"{MAIL}?q=tokeniser"
        html = observer.get(MAIL).content.decode()
        assert 'href="?q=tokeniser"' in html
        assert "Mine" in html
        row = SavedFilter.objects.get()
        assert (row.table, row.person.username) == ("mailroom.mail", "observer")
        assert forget(observer, row).status_code == 302
        assert "tokeniser" not in observer.get(MAIL).content.decode()

    def test_is_marked_while_it_is_the_present_one(self, observer, company):
        keep(observer)
        marked = 'href="?q=tokeniser" aria-current="true"'
        assert marked in observer.get(f"{MAIL}?q=tokeniser").content.decode()
        assert marked not in observer.get(f"{MAIL}?q=other").content.decode()

    def test_can_be_kept_only_while_something_is_filtered(self, observer, company):
        assert "Save this filter" not in observer.get(MAIL).content.decode()
        assert "Save this filter" not in observer.get(f"{MAIL}?p=2").content.decode()
        assert "Save this filter" in observer.get(f"{MAIL}?q=x").content.decode()

    def test_replaces_the_one_of_the_same_name(self, observer, company):
        keep(observer)
        keep(observer, query="q=other")
        assert SavedFilter.objects.get().query == "q=other"

    @pytest.mark.parametrize(
        ("name", "query"), [("", "q=x"), ("Mine", ""), ("Mine", "p=3"), ("n" * 41, "q=x")]
    )
    def test_of_no_name_or_nothing_is_not_kept(self, observer, company, name, query):
        assert keep(observer, name=name, query=query).status_code == 302
        assert not SavedFilter.objects.exists()

    def test_shows_a_name_as_text(self, observer, company):
        keep(observer, name="<script>x</script>", query='q="><b>')
        html = observer.get(MAIL).content.decode()
        assert "<script>x" not in html
        assert "&lt;script&gt;x" in html

    def test_leads_nowhere_but_to_its_list(self, observer, company):
        answer = keep(observer, query="next=//evil.example&q=x")
        assert answer.url.startswith(MAIL)


class TestOfAnotherPerson:
    def test_is_neither_seen_nor_removed(self, observer, board, company):
        keep(observer)
        row = SavedFilter.objects.get()
        assert "tokeniser" not in board.get(MAIL).content.decode()
        assert forget(board, row).status_code == 404
        assert SavedFilter.objects.filter(id=row.id).exists()

    def test_may_have_the_same_name(self, observer, board, company):
        keep(observer)
        keep(board, query="q=other")
        assert SavedFilter.objects.count() == 2

    def test_goes_with_its_person(self, observer, company):
        keep(observer)
        get_user_model().objects.get(username="observer").delete()
        assert not SavedFilter.objects.exists()


class TestOfAListOneMayNotSee:
    def test_is_refused(self, sign_in, company):
        assert keep(sign_in(PeopleGroup.HR)).status_code == 403
        assert not SavedFilter.objects.exists()

    @pytest.mark.parametrize("table", ["", "mailroom.none", "orgchart.membership"])
    def test_that_is_none_is_refused(self, observer, company, table):
        assert keep(observer, table=table).status_code == 404

    def test_is_closed_to_who_is_not_signed_in(self, client, db):
        assert keep(client).url.startswith("/admin/login/")

    def test_is_not_kept_by_a_link(self, observer, company):
        assert observer.get(SAVE).status_code == 405


class TestTheService:
    @pytest.fixture
    def person(self, db):
        return get_user_model().objects.create_user("pat").id

    def save(self, person, name="Mine", query="q=x"):
        return save_filter(
            person_id=person, table="mailroom.mail", name=name, query=query, now=timezone.now()
        )

    def test_keeps_so_many_and_no_more(self, person):
        for number in range(MOST):
            self.save(person, name=f"filter {number}")
        with pytest.raises(Denied) as refusal:
            self.save(person, name="one more")
        assert refusal.value.deny.code is Code.INVALID_PARAMS
        self.save(person, name="filter 3", query="q=y")
        assert len(filters_of(person_id=person, table="mailroom.mail")) == MOST

    def test_removes_nothing_that_is_not_there(self, person):
        assert remove_filter(person_id=person, filter_id=0) is None

    def test_lists_by_name(self, person):
        for name in ("b", "a"):
            self.save(person, name=name)
        assert [row.name for row in filters_of(person_id=person, table="mailroom.mail")] == [
            "a",
            "b",
        ]


@pytest.mark.django_db(transaction=True)
def test_of_two_saves_at_once_one_row_is_left():
    person = get_user_model().objects.create_user("pat").id

    def save(query):
        try:
            save_filter(person_id=person, table="mailroom.mail", name="Mine", query=query,
                        now=timezone.now())  # fmt: skip
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(save, f"q={number}") for number in range(8)]:
            done.result()
    assert SavedFilter.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_saves_at_once_none_is_one_more_than_the_most():
    """The list shows so many: one more could not be removed."""
    person = get_user_model().objects.create_user("pat").id
    given = {"person_id": person, "table": "mailroom.mail", "query": "q=x", "now": timezone.now()}
    for number in range(MOST - 1):
        save_filter(name=f"filter {number}", **given)

    def save(number):
        with suppress(Denied):
            save_filter(name=f"last {number}", **given)
        connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(save, range(8)))
    assert SavedFilter.objects.count() == MOST


class TestFiltersIn:
    @pytest.mark.parametrize(
        ("query", "filters"),
        [
            ("q=x", "q=x"),
            ("q=x&p=2", "q=x"),
            ("q=", ""),
            ("a=1&a=2", "a=1&a=2"),
            ("csrfmiddlewaretoken=s&q=x", "q=x"),
            ("q=%E6%90%9C", "q=%E6%90%9C"),
        ],
    )
    def test_leave_out_the_page_and_what_is_empty(self, query, filters):
        assert filters_in(query) == filters
