"""People's lists that are ranges of an index, in tables that are the worst for them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin, auth
from django.db import connection

from core.admin import bounded
from core.permissions import PeopleGroup
from mailroom.models import Mail, MailRejection
from orgchart.models import Organisation
from tasks.models import Task
from tests.admin.places import list_page
from tests.people import join
from tests.plans import rows_touched
from tests.rows import do_once

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAYS, A_DAY = 60, 100


@pytest.fixture
def blocked(nexus):
    """A hundred blocked mails on each of sixty days."""
    MailRejection.objects.bulk_create(
        MailRejection(
            organisation=nexus.organisation,
            from_agent="backend_worker",
            to_agent="ceo",
            mail_type="info",
            code="CONTACT_DENIED",
            reason="no contact",
            attempted_at=NOW - timedelta(days=DAYS - day, seconds=A_DAY - number),
        )
        for day in range(DAYS)
        for number in range(A_DAY)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE mailroom_mailrejection")


@pytest.mark.django_db
@pytest.mark.parametrize("is_of_one", [False, True])
def test_blocked_mails_of_a_past_day(nexus, blocked, rf, sign_in, is_of_one):
    day = (NOW - timedelta(days=50)).date().isoformat()
    asked = {"attempted_at_from_0": day, "attempted_at_to_0": day}
    if is_of_one:
        asked["organisation__id__exact"] = str(nexus.organisation.id)
    request = rf.get(list_page(MailRejection), asked)
    request.user = auth.get_user(sign_in(PeopleGroup.BOARD))
    found = admin.site.get_model_admin(MailRejection).get_changelist_instance(request).queryset
    assert found.count() == A_DAY
    assert rows_touched(*found[:50].query.sql_with_params()) <= 2 * A_DAY
    moments = [row.attempted_at for row in found[:50]]
    assert moments == sorted(moments, reverse=True)


LOOKED_THROUGH = 200
OLD, NEW = 300, 1000


@pytest.fixture
def mails(nexus, monkeypatch):
    """An inbox that got its last mails, some of them of rare kinds, long before another's."""
    monkeypatch.setattr(bounded, "LOOKED_THROUGH", LOOKED_THROUGH)
    writer = nexus.agent("backend_worker")

    def mail(number, recipient, **kind):
        return Mail(
            id=f"MAIL-{NOW + timedelta(seconds=number):%Y%m%d%H%M%S%f}-000000",
            organisation=nexus.organisation,
            sender=writer,
            recipient=recipient,
            from_agent=writer.handle,
            to_agent=recipient.handle,
            subject=f"Word {number}",
            created_at=NOW,
            delivered_at=NOW,
            **{"mail_type": "info", "status": "read", "read_at": NOW} | kind,
        )

    silent, busy = nexus.agent("it_manager"), nexus.agent("ceo")
    rare = {"mail_type": "report", "status": "delivered", "read_at": None}

    def send():
        Mail.objects.bulk_create(
            [
                *(mail(number, silent) for number in range(OLD)),
                *(mail(number, silent, **rare) for number in range(OLD, OLD + 5)),
                *(mail(number, busy) for number in range(OLD + 5, OLD + NEW)),
            ]
        )

    do_once("mails of a silent and of a busy inbox", send)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE mailroom_mail")
        cursor.execute("SET LOCAL enable_seqscan = off")  # it suits so small a table
    return silent


OF_THE_SILENT = {"recipient__id__exact": "silent"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "count", "at_most"),
    [
        ({}, OLD + NEW, 55),
        (OF_THE_SILENT, OLD + 5, 55),
        (OF_THE_SILENT | {"mail_type": "report"}, 5, LOOKED_THROUGH),
        (OF_THE_SILENT | {"reading": "unread"}, 5, LOOKED_THROUGH),
        (OF_THE_SILENT | {"reading": "read"}, LOOKED_THROUGH - 5, LOOKED_THROUGH),
        (OF_THE_SILENT | {"q": "Word 7"}, 0, LOOKED_THROUGH),
        (OF_THE_SILENT | {"q": f"Word {OLD - 1}"}, 1, LOOKED_THROUGH),
        ({"mail_type": "report"}, 0, LOOKED_THROUGH),
        ({"reading": "unread"}, 0, LOOKED_THROUGH),
        ({"reading": "read", "mail_type": "info"}, LOOKED_THROUGH, LOOKED_THROUGH),
        ({"q": "Word 7"}, 0, LOOKED_THROUGH),
        ({"q": f"Word {OLD + NEW - 1}"}, 1, LOOKED_THROUGH),
    ],
)
def test_mails_by_what_no_index_knows(nexus, mails, rf, sign_in, asked, count, at_most):
    if "recipient__id__exact" in asked:
        asked = asked | {"recipient__id__exact": str(mails.id)}
    request = rf.get(list_page(Mail), asked)
    request.user = auth.get_user(sign_in(PeopleGroup.BOARD))
    found = admin.site.get_model_admin(Mail).get_changelist_instance(request).queryset
    assert found.count() == count
    assert rows_touched(*found[:50].query.sql_with_params()) <= at_most + 5
    ids = [row.id for row in found]
    assert ids == sorted(ids, reverse=True)


@pytest.mark.django_db
def test_a_list_says_that_it_looked_through_the_newest(nexus, mails, sign_in):
    board = sign_in(PeopleGroup.BOARD)
    said = f"The newest {LOOKED_THROUGH} rows were looked through."
    for asked, is_cut in (({"reading": "unread"}, True), ({}, False)):
        page = board.get(list_page(Mail), asked).content.decode()
        assert (said in page) is is_cut


class TestTasksByWords:
    """A small organisation's tasks are older than the newest of a large one."""

    @pytest.fixture
    def small(self, db, monkeypatch):
        monkeypatch.setattr(bounded, "LOOKED_THROUGH", LOOKED_THROUGH)

        def make():
            small, large = (
                Organisation.objects.create(slug=slug, name=slug) for slug in ("small", "large")
            )
            Task.objects.bulk_create(
                Task(organisation=of, number=number, subject=f"Word {number}", created_by="tests")
                for of, most in ((small, OLD), (large, NEW))
                for number in range(1, most + 1)
            )
            return small

        return do_once("tasks of a small and of a large organisation", make)

    @pytest.fixture
    def page(self, rf, sign_in):
        """The list as somebody of the Board asks for it, a member of these organisations."""

        def asked(*organisations, **asked):
            user = auth.get_user(sign_in(PeopleGroup.BOARD))
            if organisations:
                user.memberships.all().delete()
                join(user, *organisations)
            request = rf.get(list_page(Task), asked)
            request.user = user
            return admin.site.get_model_admin(Task).get_changelist_instance(request).queryset

        return asked

    def test_are_found_by_a_member_of_it_alone(self, small, page):
        assert [task.organisation for task in page(small, q=f"Word {OLD}")] == [small]

    def test_are_found_where_the_list_is_of_it(self, small, page):
        found = page(q=f"Word {OLD}", organisation__id__exact=str(small.id))
        assert [task.organisation for task in found] == [small]

    def test_are_looked_for_among_the_newest(self, small, page):
        edge = OLD - LOOKED_THROUGH
        assert [page(small, q=f"Word {edge + more}").count() for more in (0, 1)] == [0, 1]

    def test_are_said_to_be_cut(self, small, sign_in):
        board, said = sign_in(PeopleGroup.BOARD), f"The newest {LOOKED_THROUGH} rows were looked"
        board.get("/admin/search/", {"s": "Word", "extended": 1})
        for asked in ({}, {"q": "Word"}):
            page = board.get(list_page(Task), asked).content.decode()
            assert (said in page) is bool(asked)
