"""Reading mail: pages, filters, the unread count, and whose reading counts."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core import paging
from ledger.models import Event
from mailroom import inbox
from mailroom.models import Mail
from tests.mailroom.world import NOW, after, call, deactivate, sent


def read(company, who="it_manager", **filters):
    return call(company, who, "read_inbox", **filters).result


def fill(company, count, *, to="it_manager", sender="backend_worker", read_at=None):
    """Mails of one sender, a second apart; their ids, oldest first."""
    rows = [
        Mail(
            id=f"MAIL-{NOW + timedelta(seconds=n):%Y%m%d%H%M%S%f}-{n:04d}",
            organisation=company.organisation,
            sender_id=company.policy.agents[sender].id,
            recipient_id=company.policy.agents[to].id,
            from_agent=sender,
            to_agent=to,
            mail_type="info",
            subject=f"Mail {n}",
            body="x",
            status="read" if read_at else "delivered",
            read_at=read_at,
            created_at=NOW,
        )
        for n in range(count)
    ]
    Mail.objects.bulk_create(rows, batch_size=500)
    return [row.id for row in rows]


class TestAPage:
    def test_shows_the_newest_first_and_consumes_nothing(self, nexus):
        made = fill(nexus, 3)
        for _ in range(2):
            page = read(nexus)
            assert [m["mail_id"] for m in page["mails"]] == made[::-1]
            assert (page["unread"], page["next_cursor"]) == (3, None)

    def test_has_the_header_of_the_wire_and_no_body(self, nexus):
        sent(nexus, "backend_worker", "it_manager")
        (mail,) = read(nexus)["mails"]
        assert list(mail) == [
            "mail_id", "from", "to", "type", "subject", "priority", "status", "created_at",
            "read_at", "contract_ref", "reply_to",
        ]  # fmt: skip

    def test_follows_the_one_before_without_gap_or_repetition(self, nexus):
        made = fill(nexus, 25)
        seen, cursor = [], None
        while True:
            page = read(nexus, limit=10, cursor=cursor)
            seen += [m["mail_id"] for m in page["mails"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
            sent(nexus, "qa_worker", "it_manager", after(days=1, seconds=len(seen)))
        assert seen == made[::-1]

    def test_that_is_exactly_full_is_the_last(self, nexus):
        fill(nexus, 10)
        assert read(nexus, limit=10)["next_cursor"] is None

    @pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 201}, {"limit": True}, {"wait": 31}])
    def test_is_of_bounded_size_and_patience(self, nexus, wrong):
        assert call(nexus, "it_manager", "read_inbox", **wrong).code == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        "cursor", ["", "x", "MAIL-1", "4pyT", "' OR 1=1 --", paging.encode("CON-1"), "aGVsbG8"]
    )
    def test_is_not_made_of_a_cursor_that_no_page_gave(self, nexus, cursor):
        fill(nexus, 2)
        assert call(nexus, "it_manager", "read_inbox", cursor=cursor).code == "INVALID_PARAMS"

    def test_holds_ones_own_mails_only(self, nexus):
        fill(nexus, 3, to="it_manager")
        assert read(nexus, "backend_worker")["mails"] == []
        assert read(nexus, "ceo") == {"mails": [], "next_cursor": None, "unread": 0}

    def test_costs_one_query_beside_the_callers(self, nexus):
        fill(nexus, 5)
        caller = nexus.caller("it_manager")
        with CaptureQueriesContext(connection) as queries:
            inbox.read_inbox(caller=caller)
        assert len(queries) == 1


class TestFilters:
    def test_by_state_type_and_sender(self, nexus):
        read_ones = fill(nexus, 2, sender="qa_worker", read_at=NOW)
        report = sent(nexus, "backend_worker", "it_manager", after(hours=1), type="report")
        info = sent(nexus, "devops_worker", "it_manager", after(hours=2))

        def found(**filters):
            return {m["mail_id"] for m in read(nexus, **filters)["mails"]}

        assert found() == found(status="unread") == {report, info}
        assert found(status="read") == set(read_ones)
        assert found(status="all") == {*read_ones, report, info}
        assert found(type="report") == {report}
        assert found(from_="devops_worker") == {info}
        assert found(type="report", from_="devops_worker") == set()
        assert found(status="all", from_="qa_worker") == set(read_ones)

    def test_take_an_alias_for_its_agent(self, nexus):
        mail = sent(nexus, "backend_worker", "it_manager")
        (found,) = read(nexus, from_="backend_dev")["mails"]
        assert found["mail_id"] == mail

    def test_never_widen_what_is_seen(self, nexus):
        sent(nexus, "it_manager", "ceo", type="report")
        assert read(nexus, "backend_worker", status="all", from_="it_manager")["mails"] == []


class TestTheUnreadCount:
    def test_stops_at_a_thousand(self, nexus):
        fill(nexus, inbox.UNREAD_COUNTED + 5)
        assert read(nexus, limit=1)["unread"] == 1000

    def test_counts_all_whatever_the_filter_shows(self, nexus):
        fill(nexus, 3)
        assert read(nexus, type="report") == {"mails": [], "next_cursor": None, "unread": 3}


class TestMailOfWhoLeft:
    """Unread mail goes to the one above; what was read stays where it was (Spec: mail 34)."""

    @pytest.fixture
    def left(self, nexus):
        """A mail that nobody had read, and one that had been, of a manager who left."""
        unread, seen = (
            sent(nexus, "backend_worker", "it_manager", after(seconds=n)) for n in (1, 2)
        )
        call(nexus, "it_manager", "read_mail", mail_id=seen)
        deactivate(nexus, "it_manager")
        return unread, seen

    def test_is_listed_and_read_by_the_one_above_and_stays_unread(self, nexus, left):
        unread, _ = left
        for _ in range(2):
            (found,) = read(nexus, "ceo", left_by="it_admin", status="all")["mails"]
            assert (found["mail_id"], found["to"]) == (unread, "it_manager")
            body = call(nexus, "ceo", "read_mail", mail_id=unread).result["body"]
            assert body == "A word."
        assert Mail.objects.get(id=unread).read_at is None

    def test_that_was_read_is_nobody_elses(self, nexus, left):
        assert call(nexus, "ceo", "read_mail", mail_id=left[1]).code == "NOT_FOUND"

    @pytest.mark.parametrize("who", ["hr_manager", "qa_worker", "product_manager"])
    def test_is_not_for_anybody_beside(self, nexus, left, who):
        assert call(nexus, who, "read_mail", mail_id=left[0]).code == "NOT_FOUND"
        assert call(nexus, who, "read_inbox", left_by="it_manager").code == "NOT_FOUND"

    @pytest.mark.parametrize("name", ["it_manager", "ceo", "nobody", "board"])
    def test_is_of_nobody_who_is_there(self, nexus, name):
        mail = sent(nexus, "backend_worker", "it_manager")
        assert call(nexus, "ceo", "read_inbox", left_by=name).code == "NOT_FOUND"
        assert call(nexus, "ceo", "read_mail", mail_id=mail).code == "NOT_FOUND"


class TestReadingOne:
    def test_marks_it_for_its_recipient_once(self, nexus):
        mail = sent(nexus, "backend_worker", "it_manager")
        first = call(nexus, "it_manager", "read_mail", after(hours=1), mail_id=mail).result
        again = call(nexus, "it_manager", "read_mail", after(hours=2), mail_id=mail).result
        assert first["read_at"] == again["read_at"] == after(hours=1)
        assert first["status"] == "read"
        assert Event.objects.filter(action="mail.read").count() == 1
        assert read(nexus)["unread"] == 0

    def test_by_its_sender_marks_nothing(self, nexus):
        mail = sent(nexus, "backend_worker", "it_manager")
        seen = call(nexus, "backend_worker", "read_mail", mail_id=mail).result
        assert (seen["read_at"], seen["status"], seen["body"]) == (None, "delivered", "A word.")
        assert read(nexus)["unread"] == 1

    def test_shows_how_it_was_routed(self, nexus):
        mail = sent(nexus, "backend_worker", "it_manager")
        log = call(nexus, "it_manager", "read_mail", mail_id=mail).result["route_log"]
        assert log[0] == "from agent:backend_worker"
        assert log[1].startswith("allowed: ")

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            ("", "INVALID_PARAMS"),
            ("x" * 33, "INVALID_PARAMS"),
            ("MAIL-1", "NOT_FOUND"),
            ("' OR ''='", "NOT_FOUND"),
        ],
    )
    def test_of_no_such_id_is_not_found(self, nexus, wrong, code):
        assert call(nexus, "it_manager", "read_mail", mail_id=wrong).code == code
