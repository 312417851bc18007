"""Search from any page, the ledger's own search, and lists as files."""

import csv
import io
import json
import re
import tracemalloc
from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.admin import exporting
from core.permissions import PeopleGroup
from ledger.admin import verifying
from ledger.models import Event
from ledger.rules import Finding, SealFault
from ledger.searching import find_events
from ledger.verification import VerificationReport
from mailroom.models import Mail, MailRejection
from orgchart.keys import issue_key
from orgchart.models import ApiKey, Membership
from tasks.models import Task
from tasks.vocabulary import MAX_TASK_TEXT
from tests.admin.places import list_page
from tests.browser.day import day_of


@pytest.fixture
def played(company):
    return day_of(company)


def text_of(answer):
    return b"".join(answer.streaming_content).decode()


def found(client, term):
    """What the search of every page shows: titles by link."""
    html = client.get("/admin/search/", {"s": term, "extended": 1}).content.decode()
    return dict(re.findall(r'href="([^"]+)"\s+data-title="([^"]*)"', html))


class TestSearchEverywhere:
    def test_finds_rows_of_every_kind(self, board, company, played):
        worker = company.agent("backend_worker")
        assert f"/admin/orgchart/agent/{worker.id}/change/" in found(board, "backend_worker")
        order = f"/admin/contracts/contract/{played['order']}/change/"
        assert order in found(board, played["order"])
        mail = f"/admin/mailroom/mail/{played['question']}/change/"
        assert mail in found(board, played["question"])
        assert mail in found(board, "tokeniser")
        assert "/admin/ledger/event/?code=CONTACT_DENIED" in found(board, "contact_denied")
        assert any("tool=send_mail" in link for link in found(board, "send_mail"))

    def test_finds_an_event_by_its_id_and_number(self, board, company, played):
        event = Event.objects.filter(organisation_id=company.organisation.id).first()
        for term in (str(event.id), str(event.seq)):
            assert f"/admin/ledger/event/{event.seq}/change/" in found(board, term)

    def test_shows_each_only_what_they_may_open(self, hr, nobody, company, played):
        for term in ("tokeniser", played["order"], played["question"], "contact_denied"):
            assert found(hr, term) == {}
        assert found(nobody, "backend_worker") == {}

    @pytest.mark.parametrize(
        "term", ["", "x", "9" * 60, "%", "<script>", "\u0000", "MAIL-", "' or 1"]
    )
    def test_takes_any_term(self, board, company, term):
        answer = board.get("/admin/search/", {"s": term})
        assert answer.status_code == (400 if "\0" in term else 200)
        assert "<script>" not in answer.content.decode()


class TestTheSearchOfAList:
    @pytest.mark.parametrize("page", ["documents/memory", "ledger/event", "orgchart/agent"])
    def test_looks_for_few_words(self, board, company, page):
        """Each word is looked for in every row that has the ones before it."""

        def asked(words):
            with CaptureQueriesContext(connection) as captured:
                answer = board.get(f"/admin/{page}/", {"q": " ".join(words)})
            conditions = sum(query["sql"].count(" AND ") for query in captured)
            return len(captured) + conditions, answer.content.decode()

        board.get(f"/admin/{page}/")
        few, html = asked(["one"])
        assert "10 words at most" not in html
        many, html = asked(["one"] * 200)
        assert "10 words at most" in html
        assert many < few + 20


class TestTheSearchOfTheLedger:
    def seqs(self, words, now=None):
        return set(
            find_events(Event.objects.all(), words, now=now or timezone.now()).values_list(
                "seq", flat=True
            )
        )

    def test_takes_a_name_a_tool_a_code_and_an_id(self, company, played):
        events = Event.objects.all()
        assert self.seqs("backend_worker") == set(
            events.filter(actor="agent:backend_worker").values_list("seq", flat=True)
        )
        assert self.seqs("send_mail") == set(
            events.filter(tool="send_mail").values_list("seq", flat=True)
        )
        assert self.seqs("CONTACT_DENIED") == set(
            events.filter(code="CONTACT_DENIED").values_list("seq", flat=True)
        )
        event = events.filter(subject=f"contract:{played['order']}").first()
        assert event.seq in self.seqs(played["order"])
        assert self.seqs(str(event.id)) == {event.seq}
        assert self.seqs(str(event.seq)) == {event.seq}

    def test_takes_days(self, company, played):
        now = timezone.now()
        today = self.seqs("today", now)
        assert today
        assert self.seqs("yesterday", now) == set()
        assert self.seqs("yesterday", now + timedelta(days=1)) == today
        assert self.seqs(f"{now:%Y-%m-%d}", now) == today

    def test_narrows_with_every_word(self, company, played):
        both = self.seqs("backend_worker CONTACT_DENIED today")
        assert both == self.seqs("backend_worker") & self.seqs("CONTACT_DENIED")
        assert both
        assert self.seqs("backend_worker yesterday") == set()

    def test_reads_no_more_than_the_newest_for_a_word_without_index(
        self, company, played, monkeypatch
    ):
        from ledger import searching

        monkeypatch.setattr(searching, "SEARCHED", 1)
        assert len(self.seqs("backend_worker")) <= 1


class TestAnExport:
    def test_holds_what_the_list_shows_and_is_recorded(self, observer, company, played):
        page = "/admin/ledger/event/export/?q=backend_worker+today&decision__exact=deny"
        assert "Download CSV" in observer.get(page).content.decode()
        assert not Event.objects.filter(action="list.exported").exists()
        lines = list(csv.DictReader(io.StringIO(text_of(observer.post(page, {"format": "csv"})))))
        wanted = Event.objects.filter(actor="agent:backend_worker", decision="deny")
        assert {int(line["seq"]) for line in lines} == set(wanted.values_list("seq", flat=True))
        assert lines
        event = Event.objects.get(action="list.exported")
        assert event.actor == "human:observer"
        assert event.details["filters"]["q"] == "backend_worker today"

    def test_is_the_same_as_json(self, observer, company, played):
        page = "/admin/mailroom/mail/export/?q=tokeniser"
        rows = json.loads(text_of(observer.post(page, {"format": "json"})))
        wanted = Mail.objects.filter(subject__icontains="tokeniser")
        assert {row["id"] for row in rows} == set(wanted.values_list("id", flat=True))
        assert played["question"] in {row["id"] for row in rows}

    def test_of_nothing_is_whole_as_well(self, observer, company):
        page = "/admin/mailroom/mail/export/?q=MAIL-none"
        assert json.loads(text_of(observer.post(page, {"format": "json"}))) == []

    def test_is_bounded_and_turns_pages(self, observer, company, played, monkeypatch):
        monkeypatch.setattr(exporting, "PAGE", 2)
        monkeypatch.setattr(exporting, "MOST", 5)
        page = "/admin/mailroom/mail/export/"
        rows = json.loads(text_of(observer.post(page, {"format": "json"})))
        ids = [row["id"] for row in rows]
        assert len(set(ids)) == 5
        assert ids == sorted(ids, reverse=True)
        assert "The newest 5 of more rows" in observer.get(page).content.decode()

    @pytest.mark.parametrize("kind", ["csv", "json"])
    def test_holds_few_rows_at_once_however_long_they_are(self, observer, company, kind):
        made = {"organisation": company.organisation, "created_by": "agent:ceo"}
        text = "字" * (MAX_TASK_TEXT // 4)
        Task.objects.bulk_create(
            Task(number=number, subject="Long", description=text, **made)
            for number in range(1, 401)
        )
        tracemalloc.start()
        answer = observer.post("/admin/tasks/task/export/", {"format": kind})
        size = sum(len(part) for part in answer)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size > 400 * len(text)
        assert most < size, most

    @pytest.mark.parametrize("page", ["99", "9" * 400, "%D9%A3%D9%A3"])
    def test_of_a_page_that_is_none_shows_the_list(
        self, observer, company, played, page, monkeypatch
    ):
        monkeypatch.setattr(admin.site.get_model_admin(Mail), "list_per_page", 1)
        listed = list_page(Mail)
        address = f"{listed}export/?p={page}"
        for answer in (observer.get(address), observer.post(address, {"format": "csv"})):
            assert (answer.status_code, answer.headers.get("Location")) == (302, f"{listed}?e=1")
        assert not Event.objects.filter(action="list.exported").exists()

    @pytest.mark.parametrize(
        "ended", ["membership", "group", "one group", "session", "account", "staff"]
    )
    @pytest.mark.parametrize("kind", ["csv", "json"])
    def test_ends_with_the_right_to_look(self, observer, company, groups, monkeypatch, kind, ended):
        """A client that reads slowly makes a file last for hours."""
        if ended == "one group":  # HR looks at tasks, too, and not at their descriptions
            User.objects.get(username="observer").groups.add(groups[PeopleGroup.HR])
        monkeypatch.setattr(exporting, "PAGE", 2)
        made = {"organisation": company.organisation, "created_by": "agent:ceo"}
        Task.objects.bulk_create(Task(number=n, subject=f"Row {n}.", **made) for n in range(1, 7))
        answer = observer.post("/admin/tasks/task/export/", {"format": kind})
        parts, user = iter(answer), answer.wsgi_request.user
        read = b""
        while b"Row 5." not in read:
            read += next(parts)
        match ended:
            case "membership":
                Membership.objects.filter(person=user).delete()
            case "group":
                user.groups.clear()
            case "one group":
                user.groups.remove(groups[PeopleGroup.OBSERVER])
            case "session":
                observer.logout()
            case "account":
                User.objects.filter(pk=user.pk).update(is_active=False)
            case "staff":
                User.objects.filter(pk=user.pk).update(is_staff=False)
        with pytest.raises(PermissionDenied):
            read += b"".join(parts)
        assert b"Row 4." not in read

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("page", [1, 2, 3])
    def test_goes_on_where_the_database_ends_its_connection(
        self, observer, company, monkeypatch, page
    ):
        monkeypatch.setattr(exporting, "PAGE", 2)
        made = {"organisation": company.organisation, "created_by": "agent:ceo"}
        Task.objects.bulk_create(Task(number=n, subject=f"Row {n}.", **made) for n in range(1, 7))
        part_of, asked = exporting.part_of, count(1)

        def lost(*given, **bounds):
            if next(asked) == page:
                with suppress(OperationalError), connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return part_of(*given, **bounds)

        monkeypatch.setattr(exporting, "part_of", lost)
        rows = json.loads(text_of(observer.post("/admin/tasks/task/export/", {"format": "json"})))
        assert [row["subject"] for row in rows] == [f"Row {n}." for n in range(6, 0, -1)]

    def test_is_for_who_may_look_only(self, hr, nobody, company):
        for client, page in ((hr, "/admin/mailroom/mail/"), (nobody, "/admin/orgchart/agent/")):
            assert client.get(f"{page}export/").status_code == 403
            assert client.post(f"{page}export/", {"format": "csv"}).status_code == 403

    def test_holds_no_digest_of_a_key(self, board, company, now):
        issue_key(
            agent=company.agent("qa_worker"),
            caller=company.person(PeopleGroup.BOARD),
            now=now,
            reason="r",
        )
        page = f"{list_page(ApiKey)}export/"
        (row, *_) = json.loads(text_of(board.post(page, {"format": "json"})))
        assert not {"digest", "hash", "token_digest"} & set(row)

    @pytest.mark.parametrize(
        "cell",
        [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\n=1",
            "\uff1d1+1",
            "\uff0b1",
            "\uff0d1",
            "\uff20A1",
        ],
    )
    def test_never_begins_a_cell_with_a_formula(self, cell):
        assert exporting._cell(cell).startswith("'")
        assert exporting._cell(-5) == "-5"

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    @pytest.mark.parametrize(
        "subject", ["a;=1+1", 'a;"=1+1', "a\t=1+1", "a;\uff1d1+1", "a;;@SUM(A1)", "=1;-1"]
    )
    def test_begins_none_where_cells_end_at_other_signs(
        self, observer, company, subject, delimiter
    ):
        """A semicolon in most of Europe; a program may also split at tabs."""
        made = {"organisation": company.organisation, "created_by": "agent:ceo"}
        Task.objects.create(number=1, subject=subject, description=f"a\n{subject}", **made)
        file = text_of(observer.post("/admin/tasks/task/export/", {"format": "csv"}))
        cells = [cell for row in csv.reader(io.StringIO(file), delimiter=delimiter) for cell in row]
        signs = tuple(exporting.SIGNS)
        assert [cell for cell in cells if cell.lstrip('"').startswith(signs)] == []

    @pytest.mark.parametrize("value", ["a\x1b[2Jb", ["a\x1b[2Jb"]])
    def test_steers_no_terminal(self, value):
        assert "\x1b" not in exporting._cell(value)
        assert exporting._cell("a\x1b[2Jb\r\n\u202ec") == "a[U+001B][2Jb\r\n[U+202E]c"


class TestVerify:
    FAULT = Finding(fault=SealFault.EVENT_INSERTED, message="it was inserted later", seq=7)

    @pytest.mark.parametrize(
        ("finding", "said"), [(None, "The ledger is whole"), (FAULT, "The ledger is not whole")]
    )
    def test_answers_plainly(self, observer, company, monkeypatch, finding, said):
        report = VerificationReport(seals=3, events=1200, unsealed=4, finding=finding)
        monkeypatch.setattr(verifying, "verify_ledger", lambda trusted, now: report)
        page = "/admin/ledger/event/verify/"
        asked = observer.get(page).content.decode()
        assert "Verify now" in asked
        assert "whole" not in asked
        html = observer.post(page).content.decode()
        assert said in html
        assert ("1,200 sealed events" in html) is (finding is None)

    def test_counts_what_all_do_for_members_of_every_organisation_only(
        self, observer, company, monkeypatch
    ):
        report = VerificationReport(seals=3, events=1200, unsealed=4, finding=None)
        monkeypatch.setattr(verifying, "verify_ledger", lambda trusted, now: report)
        Membership.objects.update(organisation=company.organisation)
        html = observer.post("/admin/ledger/event/verify/").content.decode()
        assert "All sealed events are as they were sealed." in html
        assert "1,200" not in html

    def test_is_for_who_may_read_the_ledger(self, hr, company):
        assert hr.post("/admin/ledger/event/verify/").status_code == 403

    def test_is_verified_by_one_thread_at_a_time(self, observer, monkeypatch):
        """The others show pages: a large ledger takes minutes."""
        monkeypatch.setattr(verifying, "verify_ledger", None)
        with verifying.UNDER_WAY:
            answer = observer.post("/admin/ledger/event/verify/")
        assert "is being verified at this moment" in answer.content.decode()
        assert 'class="nx-card nx-narrow "' in answer.content.decode()


class TestABlockedMail:
    def test_leads_to_its_rule_its_event_and_explain(self, observer, company, played):
        row = MailRejection.objects.filter(code="CONTACT_DENIED").first()
        html = observer.get(f"/admin/mailroom/mailrejection/{row.pk}/change/").content.decode()
        event = re.search(r"/admin/ledger/event/(\d+)/change/", html).group(1)
        assert Event.objects.get(seq=event).code == "CONTACT_DENIED"
        explain = re.search(r'href="(/admin/explain/[^"]+)"', html).group(1)
        assert "Refused" in observer.get(explain.replace("&amp;", "&")).content.decode()
        assert "/admin/matrix/?of=agents" in html
