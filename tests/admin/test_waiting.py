"""What waits for a person: every kind of it, for whom, and what it costs to know."""

import re
from datetime import timedelta

import pytest
from django.db import InternalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from psycopg.errors import DataCorrupted

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.models import Contract
from core.permissions import PeopleGroup
from core.waiting import COUNTED, Desk, Viewer, WaitingKind, registered_kinds
from governance.cases.models import Case
from ledger import waiting
from ledger.models import Event
from ledger.sealer import Backlog
from mailroom.models import Escalation, Mail, OutgoingNotice
from nexus_site.console import desk
from orgchart.models import PendingChange
from tests.admin.forms import filled
from tests.company import load_company
from toolbox.models import JobRun
from workspace.models import Deployment, Skill

ANYBODY = "somebody.else"


def desk_of(username, organisations=None):
    """Of a person who may decide everything."""
    return Desk(Viewer(username=username, organisations=organisations), lambda _: True)


def number(html):
    """The number next to the first page in the navigation; 0 where there is none."""
    item = re.search(r"<span>Waiting for you</span>(.*?)</a>", html, re.DOTALL).group(1)
    found = re.search(r">\s*(\d+\+?)\s*</span>", item)
    return found.group(1) if found else "0"


def report(company, subject="Search is fast"):
    return company.call(
        "ceo", "send_mail", to="board", type="report", subject=subject, body="740 ms at p95."
    ).result["mail_id"]


def mail_to_board(company, sender):
    """One that no rule of the company would let through, or that waits as something else."""
    return Mail.objects.create(
        id=f"MAIL-2020-{sender}",
        organisation=company.organisation,
        sender=company.agent(sender),
        from_agent=sender,
        to_agent="board",
        mail_type="report",
        status="delivered",
    )


def escalate_to_board(company):
    """An escalation that nobody below answered until the Board was notified of it."""
    company.call("devops_worker", "escalate", subject="Out of disk", body="Full.")
    Escalation.objects.update(told_board_at=timezone.now())


def review(company, *, now, deadline=None):
    """A contract of the Board, submitted."""
    found = issue_for_board(
        person=company.person(PeopleGroup.BOARD),
        draft=ContractDraft(to="ceo", title="Open in Paris", body="An office.", deadline=deadline),
        now=now,
    )
    company.call("ceo", "accept_contract", contract_id=found["contract_id"])
    return found["contract_id"]


def propose(company, by, now):
    return PendingChange.objects.create(
        organisation=company.organisation,
        subject="role: qa_worker",
        edit={},
        allowed=["qa_worker may read src/"],
        policy_version=1,
        proposed_by=by,
        proposed_at=now,
        reason="It tests more.",
    )


def pause():
    """A case of another organisation that waits for a person."""
    company = load_company("constitution")
    case = company.call("analyst", "case_open", title="Verify the claim", request="Is it so?")
    case_id = case.result["case_id"]
    company.call(
        "analyst",
        "case_submit",
        case_id=case_id,
        stage="ANALYSIS",
        outcome="NON_VERIFIABLE",
        content={"what": "w", "why": "y", "constraints": ["c"]},
    )
    return Case.objects.get(pk=case_id, state="paused")


def skill(now, name="deploy", **more):
    return Skill.objects.create(
        name=name, path=f"/skills/{name}", digest="a" * 64, seen_at=now, **more
    )


def dead_notice(company, now):
    return OutgoingNotice.objects.create(
        organisation=company.organisation,
        event_id="0" * 8 + "-0000-4000-8000-" + f"{now:%H%M%S%f}",
        channel="webhook",
        target="https://board.example",
        payload={"data": {"subject": "The disk is full"}},
        state="dead",
        due_at=now,
        created_at=now,
        settled_at=now,
        last_problem="timed out",
    )


def lost_deployment(company, now):
    return Deployment.objects.create(
        id="DEP-1",
        organisation=company.organisation,
        environment="staging",
        service="api",
        artifact="sha256:" + "a" * 64,
        deployed_by_id=company.agent("devops_worker").id,
        state="unknown",
        started_at=now,
        due_at=now,
        settled_at=now,
        problem="the engine did not answer",
    )


@pytest.fixture
def sealed(monkeypatch):
    """A ledger that is sealed in time."""
    monkeypatch.setattr(waiting, "read_backlog", lambda now: None)
    monkeypatch.setattr(waiting.chain_end, "is_whole", lambda: True)


@pytest.fixture
def well(db, now, sealed):
    """An installation whose scheduler runs and whose ledger is sealed."""
    JobRun.objects.create(name="any", last_at=now, last_seconds=0.1, last_rows=0, runs=1)


class TestTheFirstPage:
    def test_shows_every_kind_and_leads_to_its_decision(self, board, company, well, now):
        report(company)
        escalate_to_board(company)
        ordered = review(company, now=now)
        submits = {"type": "report", "contract_ref": ordered, "submits": True, "subject": "Paris"}
        assert company.call("ceo", "send_mail", to="board", body="b", **submits).code == "OK"
        late = review(company, now=now - timedelta(days=2), deadline=now - timedelta(hours=1))
        propose(company, ANYBODY, now)
        case = pause()
        skill(now)
        notice = dead_notice(company, now)
        lost = lost_deployment(company, now)
        html = board.get("/admin/").content.decode()
        escalation = Escalation.objects.get()
        for decision in (
            f"/admin/mailroom/escalation/{escalation.pk}/answer/",
            f"/admin/contracts/contract/{ordered}/close-passed/",
            f"/admin/contracts/contract/{late}/close-cancelled/",
            f"/admin/orgchart/pendingchange/{PendingChange.objects.get().pk}/confirm/",
            f"/admin/governance/case/{case.pk}/change/",
            f"/admin/workspace/skill/{Skill.objects.get().pk}/approve/",
            f"/admin/mailroom/outgoingnotice/{notice.pk}/resend/",
            f"/admin/workspace/deployment/{lost.pk}/look-again/",
            f"/admin/workspace/deployment/{lost.pk}/failed/",
        ):
            assert f'href="{decision}"' in html, decision
            assert board.get(decision).status_code == 200
        assert "Search is fast" in html
        desk_of_board = desk_of("board")
        assert number(html) == str(desk_of_board.total)
        titles = {turn.kind.title for turn in desk_of_board.turns(100)}
        kinds = {each.title for each in registered_kinds() if isinstance(each, WaitingKind)}
        assert kinds <= titles

    def test_begins_with_what_waits_longest(self, board, company, well, now):
        for hours in (1, 5, 3):
            propose(company, ANYBODY, now - timedelta(hours=hours))
        waited = [turn.item.since for turn in desk_of("board").turns(10) if turn.item.since]
        assert waited == sorted(waited)
        assert len(waited) == 3

    def test_shows_some_of_each_kind_however_much_of_one_waits(self, board, company, well, now):
        """Spec: people 67. Thirty mails of the top agent hid whatever came up later."""
        for _ in range(4):
            report(company)
        propose(company, ANYBODY, timezone.now())
        escalate_to_board(company)
        found = [str(turn.kind.title) for turn in desk_of("board").turns(3)]
        assert found == ["Report to the Board", "Change to confirm", "Escalation"]
        assert len(desk_of("board").turns(5)) == 5

    def test_says_so_where_nothing_waits(self, board, company, well):
        html = board.get("/admin/").content.decode()
        assert "Nothing waits for you" in html
        assert number(html) == "0"


class TestTheNumber:
    def test_is_in_the_navigation_of_every_page(self, board, company, well, now):
        propose(company, ANYBODY, now)
        for page in ("/admin/", "/admin/orgchart/agent/", "/admin/explain/"):
            assert number(board.get(page).content.decode()) == "1"

    def test_counts_no_further_than_it_says(self, board, company, well, now):
        for n in range(COUNTED + 5):
            skill(now, name=f"skill-{n}")
        assert desk.shown(COUNTED + 5) == f"{COUNTED}+"
        assert desk_of("board").counts["Skill to approve"] == COUNTED

    def test_costs_the_same_however_much_waits(self, board, company, well, now):
        def asked(page):
            board.get(page)
            with CaptureQueriesContext(connection) as seen:
                assert board.get(page).status_code == 200
            return len(seen)

        def more():
            stamp = timezone.now()
            propose(company, ANYBODY, stamp)
            skill(stamp, name=f"s{stamp:%H%M%S%f}")
            dead_notice(company, stamp)
            report(company)

        more()
        first, other = asked("/admin/"), asked("/admin/orgchart/agent/")
        for _ in range(4):
            more()
        assert asked("/admin/") == first
        assert asked("/admin/orgchart/agent/") == other


class TestWhoDecides:
    def test_is_who_may_do_the_deed(self, hr, observer, sign_in, company, well, now):
        propose(company, ANYBODY, now)
        pause()
        report(company)
        assert number(hr.get("/admin/").content.decode()) == "0"
        assert number(observer.get("/admin/").content.decode()) == "0"
        html = sign_in(PeopleGroup.REVIEWER).get("/admin/").content.decode()
        assert number(html) == "1"
        assert "Verify the claim" in html
        assert "Search is fast" not in html

    def test_is_not_the_person_who_proposed_it(self, board, company, well, now):
        propose(company, "board", now)
        assert number(board.get("/admin/").content.decode()) == "0"
        propose(company, ANYBODY, now)
        assert number(board.get("/admin/").content.decode()) == "1"

    def test_sees_only_organisations_of_their_own(self, company, well, now):
        propose(company, ANYBODY, now)
        report(company)
        escalate_to_board(company)
        own = company.organisation.id
        assert desk_of("board", organisations=frozenset([own])).total == 3
        assert desk_of("board", organisations=frozenset([own + 1])).total == 0

    def test_sees_the_installations_as_a_member_of_every_organisation_only(
        self, company, sealed, now
    ):
        """Its scheduler stands still, and a skill waits; who may decide neither is told of none."""
        skill(now)
        assert desk_of("board").total == 2
        member = desk_of("board", organisations=frozenset([company.organisation.id]))
        assert member.total == 0
        assert member.turns(10) == []

    def test_sees_nothing_as_a_member_of_none(self, company, well, now):
        propose(company, ANYBODY, now)
        pause()
        for kind in (each for each in registered_kinds() if isinstance(each, WaitingKind)):
            viewer = Viewer(username="x", organisations=frozenset())
            desk = Desk(viewer, lambda asked, own=kind.deed.permission: asked == own)
            assert desk.counts[str(kind.title)] == 0
            assert kind.title in {each.title for each in desk.kinds.values()}


class TestAnEscalation:
    def test_between_agents_waits_for_no_person(self, board, company, well):
        company.call("devops_worker", "escalate", subject="Out of disk", body="Full.")
        assert number(board.get("/admin/").content.decode()) == "0"

    def test_that_the_board_was_notified_of_waits_for_it(self, board, company, well):
        escalate_to_board(company)
        html = board.get("/admin/").content.decode()
        assert number(html) == "1"
        assert "it_manager did not answer" in html


class TestAReport:
    def test_waits_until_it_is_answered(self, board, company, well):
        mail = report(company)
        assert number(board.get("/admin/").content.decode()) == "1"
        board.post(f"/admin/mailroom/mail/{mail}/answer/", {"reply": "Thank you.", "version": 1})
        assert number(board.get("/admin/").content.decode()) == "0"
        assert Mail.objects.get(id=mail).read_at is not None

    def test_that_another_person_answered_meanwhile_is_not_answered_again(
        self, sign_in, board, company, well
    ):
        """Its sender got two answers, and neither person knew of the other's."""
        page = f"/admin/mailroom/mail/{report(company)}/answer/"
        late = filled(board, page, "act-form", reply="No.")
        assert f"<dd>{Mail.objects.get().subject}</dd>" in board.get(page).content.decode()
        board.post(page, filled(board, page, "act-form", reply="Yes."))
        html = board.post(page, late).content.decode()
        assert "another person answered it" in html
        assert [mail.body for mail in Mail.objects.filter(to_agent="ceo")] == ["Yes."]
        fresh = filled(board, page, "act-form", reply="One more word.")
        assert board.post(page, fresh).status_code == 302

    def test_waits_until_it_is_marked_as_read(self, board, company, well):
        mail = report(company)
        board.post(f"/admin/mailroom/mail/{mail}/mark-read/")
        assert number(board.get("/admin/").content.decode()) == "0"
        row = Mail.objects.get(id=mail)
        assert (row.status, row.replies.count()) == ("read", 0)

    def test_says_that_another_person_had_answered(self, board, company, well):
        page = f"/admin/mailroom/mail/{report(company)}"
        board.post(f"{page}/answer/", filled(board, f"{page}/answer/", "act-form", reply="Yes."))
        html = board.post(f"{page}/mark-read/", follow=True).content.decode()
        assert "It was answered, or marked as read, before." in html
        assert "no answer is needed" not in html

    def test_is_marked_with_the_earlier_ones_of_its_sender(self, board, company, well, now):
        """Spec: people 33. Thousands, which a looping agent sends, were marked one by one."""
        other = mail_to_board(company, "it_manager")
        escalated = mail_to_board(company, "ceo")
        Escalation.objects.create(
            mail=escalated, organisation=company.organisation, sender=escalated.sender, due_at=now
        )
        first, second, later = (report(company, subject) for subject in "abc")
        board.post(f"/admin/mailroom/mail/{second}/mark-read/", {"with_earlier": "on"})
        marked = Mail.objects.exclude(read_at=None)
        assert set(marked.values_list("id", "status", "version")) == {
            (first, "read", 2),
            (second, "read", 2),
        }
        events = Event.objects.filter(action="mail.read").values_list("subject", flat=True)
        assert set(events) == {f"mail:{first}", f"mail:{second}"}
        unread = set(Mail.objects.filter(recipient=None, read_at=None))
        assert {each.id for each in unread} == {other.id, escalated.id, later}

    def test_is_marked_by_the_board_only(self, hr, observer, company, well):
        mail = report(company)
        for person in (hr, observer):
            assert person.post(f"/admin/mailroom/mail/{mail}/mark-read/").status_code == 403
        assert Mail.objects.get(id=mail).read_at is None

    def test_of_an_agent_to_another_is_nobodys_to_mark(self, board, company, well):
        mail = company.call(
            "backend_worker", "send_mail", to="it_manager", type="question", subject="s", body="b"
        ).result["mail_id"]
        board.post(f"/admin/mailroom/mail/{mail}/mark-read/")
        assert Mail.objects.get(id=mail).read_at is None


class TestAnOverdueContract:
    def test_waits_until_it_ends(self, board, company, well, now):
        ordered = review(company, now=now - timedelta(days=2), deadline=now - timedelta(hours=1))
        assert number(board.get("/admin/").content.decode()) == "1"
        board.post(
            f"/admin/contracts/contract/{ordered}/close-cancelled/",
            {"reason": "too late", "version": Contract.objects.get(pk=ordered).version},
        )
        assert number(board.get("/admin/").content.decode()) == "0"


class TestAlarms:
    def test_ring_while_the_scheduler_stands_still(self, board, company, sealed):
        html = board.get("/admin/").content.decode()
        assert "The scheduler is not running" in html
        assert number(html) == "1"

    def test_ring_while_events_wait_for_their_seal(self, board, hr, company, well, monkeypatch):
        monkeypatch.setattr(waiting, "read_backlog", lambda now: Backlog(7, 300.0, ""))
        assert "Event 7 and those after it are not sealed" in board.get("/admin/").content.decode()
        assert "not sealed" not in hr.get("/admin/").content.decode()

    def test_ring_where_an_index_that_they_read_is_damaged(self, board, company, well, monkeypatch):
        """Each page of each person failed, as every page asks for the alarms."""

        def read(now):
            raise InternalError from DataCorrupted()

        monkeypatch.setattr(waiting, "read_backlog", read)
        html = board.get("/admin/").content.decode()
        assert "A file of the database is damaged" in html
        assert board.get("/admin/orgchart/agent/").status_code == 200

    def test_ring_while_the_folder_of_the_ledger_hangs(self, board, hr, company, well, monkeypatch):
        monkeypatch.setattr(waiting.chain_end, "is_whole", lambda: False)
        monkeypatch.setattr(waiting.chain_end, "folder_answers", lambda: False)
        html = board.get("/admin/").content.decode()
        assert "The ledger&#x27;s folder does not answer" in html
        assert "does not answer" not in hr.get("/admin/").content.decode()

    def test_ring_while_the_ledger_does_not_end_as_it_was_kept(
        self, board, hr, company, well, monkeypatch
    ):
        monkeypatch.setattr(waiting.chain_end, "is_whole", lambda: False)
        html = board.get("/admin/").content.decode()
        assert "The end of the ledger is not as this machine kept it" in html
        assert "as this machine kept it" not in hr.get("/admin/").content.decode()
