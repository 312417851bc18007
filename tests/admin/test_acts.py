"""What people do beside editing: keys, activity, modes, contracts; who may, and the trace."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.utils import timezone

from contracts.models import Contract
from core.database import database_now
from core.permissions import PeopleGroup
from documents.models import Memory
from governance import admin as acts_of_governance
from ledger.models import Event
from mailroom.models import Mail
from orgchart.models import Agent, ApiKey
from tests.admin.forms import filled, values_of
from tests.admin.places import act_page, change_page, list_page
from tests.browser.day import HOSTILE
from tests.company import load_company
from tests.concurrency import at_once
from tests.rows import newest_event
from toolbox.models import ModeGrant, Session

REASON = "The Board decided so on Friday."
ISSUE = "/admin/contracts/contract/issue/"
FAILING_SESSION = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'it failed' USING ERRCODE = '%(code)s'; END$$;
CREATE TRIGGER fail BEFORE UPDATE ON django_session EXECUTE FUNCTION fail();
"""


@pytest.fixture
def worker(company):
    """An agent with a key and a session, as after its first call."""
    company.get("/api/v1/me", "backend_worker")
    return company.agent("backend_worker")


@pytest.fixture
def session(worker):
    return Session.objects.get(agent=worker)


@pytest.fixture
def order(company):
    """A contract of the Board that waits."""
    from contracts.issuing.drafts import ContractDraft
    from contracts.issuing.services import issue_for_board

    found = issue_for_board(
        person=company.person(PeopleGroup.BOARD),
        draft=ContractDraft(to="ceo", title="T", body="B"),
        now=timezone.now(),
    )
    return Contract.objects.get(id=found["contract_id"])


def act(client, row, name, reason=REASON, **changes):
    page = act_page(row, name)
    return client.post(page, filled(client, page, "act-form", reason=reason, **changes))


class TestKeys:
    def test_are_issued_once_by_one_form(self, board, worker):
        """Of two answers to one form a browser shows the last: no person saw the first."""
        page = act_page(worker, "issue-key")
        data = filled(board, page, "act-form", reason=REASON)
        issued = ApiKey.objects.count()
        assert 'id="secret"' in board.post(page, data).content.decode()
        again = board.post(page, data).content.decode()
        assert 'id="secret"' not in again
        assert "keys of backend_worker" in again
        assert ApiKey.objects.count() == issued + 1
        assert 'id="secret"' in act(board, worker, "issue-key").content.decode()

    def test_are_issued_by_the_board_and_shown_exactly_once(self, board, worker, company):
        answer = act(board, worker, "issue-key")
        key = ApiKey.objects.filter(created_by="human:board").get()
        shown = answer.content.decode().split('id="secret">')[1].split("<")[0]
        assert shown.startswith(key.prefix)
        assert len(shown) > 40
        assert "no-store" in answer.headers["Cache-Control"]
        assert newest_event().action == "key.issued"
        assert (newest_event().actor, newest_event().reason) == ("human:board", REASON)
        for page in [change_page(key), list_page(ApiKey), change_page(worker), "/admin/"]:
            assert shown not in board.get(page).content.decode()
        assert shown not in str(dict(board.session))
        me = Client(HTTP_HOST="127.0.0.1").get(
            "/api/v1/me", headers={"Authorization": f"Bearer {shown}"}
        )
        assert me.json()["agent"] == "backend_worker"

    def test_are_revoked_by_the_board_at_once(self, board, worker, company):
        key = ApiKey.objects.get(agent=worker)
        assert company.get("/api/v1/me", "backend_worker").status == 200
        assert act(board, key, "revoke").status_code == 302
        assert company.get("/api/v1/me", "backend_worker").status == 401
        key.refresh_from_db()
        assert key.revoked_by == "human:board"
        assert Event.objects.get(action="key.revoked").reason == REASON
        page = board.get(act_page(key, "revoke")).content.decode()
        assert "is not possible now" in page

    def test_are_revoked_with_a_word_about_the_others_of_their_agent(self, board, worker):
        key = ApiKey.objects.get(agent=worker)
        act(board, worker, "issue-key")
        html = board.get(act_page(key, "revoke")).content.decode()
        assert "<dt>Its other keys in use</dt><dd>1</dd>" in html

    def test_are_not_revoked_where_their_agent_has_fewer_others_than_was_shown(
        self, board, worker, company
    ):
        """Spec: people 8: another person revoked the key with which it was to go on."""
        key = ApiKey.objects.get(agent=worker)
        act(board, worker, "issue-key")
        page = act_page(key, "revoke")
        form = filled(board, page, "act-form", reason=REASON)
        act(board, ApiKey.objects.filter(agent=worker).exclude(pk=key.pk).get(), "revoke")
        assert "changed after you read it" in board.post(page, form).content.decode()
        assert company.get("/api/v1/me", "backend_worker").status == 200
        assert act(board, key, "revoke").status_code == 302
        assert company.get("/api/v1/me", "backend_worker").status == 401

    def test_are_listed_by_prefix_only(self, observer, worker):
        key = ApiKey.objects.get(agent=worker)
        html = observer.get(list_page(ApiKey)).content.decode()
        assert key.prefix in html
        assert key.digest.hex() not in observer.get(change_page(key)).content.decode()


class TestActivity:
    @pytest.mark.parametrize("desk", [PeopleGroup.BOARD, PeopleGroup.HR])
    def test_is_ended_and_begun_again_with_a_reason(self, sign_in, worker, company, desk):
        client = sign_in(desk)
        assert act(client, worker, "deactivate").status_code == 302
        worker.refresh_from_db()
        event = Event.objects.filter(action="agent.deactivated").get()
        assert not worker.active
        assert (event.actor, event.reason) == (f"human:{desk.lower()}", REASON)
        assert company.get("/api/v1/me", "backend_worker").status == 401
        page = client.get(act_page(worker, "activate")).content.decode()
        assert "+ backend_worker acts as backend_worker" in page
        answer = act(client, worker, "activate")
        worker.refresh_from_db()
        alone = desk == PeopleGroup.BOARD
        assert worker.active is alone, "what HR gives back waits for the Board"
        assert answer.status_code == (200 if alone else 302)
        assert ("nxs_" in answer.content.decode()) is alone
        assert newest_event().action == ("key.issued" if alone else "change.proposed")

    def test_says_how_many_effects_it_does_not_show(self, board, company, worker, monkeypatch):
        monkeypatch.setattr(acts_of_governance, "SHOWN", 1)
        page = board.get(act_page(worker, "deactivate")).content.decode()
        assert len(re.findall(r"\n- ", page)) == 2
        assert re.search(r"\n- and \d+ more", page)

    def test_shows_the_effects_before(self, board, worker, company):
        page = board.get(act_page(worker, "deactivate")).content.decode()
        assert "- backend_worker acts as backend_worker" in page
        worker.refresh_from_db()
        assert worker.active
        leader = load_company("soloqueue").agent("coding_leader")
        page = board.get(act_page(leader, "deactivate")).content.decode()
        assert "Not possible: " in page

    def test_of_a_stale_page_is_refused(self, board, worker, company, hr):
        page = act_page(worker, "deactivate")
        data = filled(board, page, "act-form", reason=REASON)
        assert act(hr, company.agent("qa_worker"), "deactivate").status_code == 302
        answer = board.post(page, data)
        worker.refresh_from_db()
        assert answer.status_code == 200
        assert "changed after you read it" in answer.content.decode()
        assert worker.active
        assert (newest_event().action, newest_event().code) == ("human.denied", "VERSION_MISMATCH")

    def test_says_before_what_the_agent_holds(self, board, worker, company):
        html = board.get(act_page(worker, "deactivate")).content.decode()
        for line in ["Open contracts that it works on", "Unread mails", "Keys in use"]:
            assert line in html


class TestModes:
    def test_coding_is_opened_and_closed_by_the_board(self, board, session, company):
        assert company.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"
        assert act(board, session, "open-coding").status_code == 302
        assert company.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "coding"
        grant = ModeGrant.objects.get()
        assert (grant.opened_by, grant.reason) == ("human:board", REASON)
        assert act(board, session, "close-coding").status_code == 302
        assert company.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"
        actions = list(Event.objects.filter(actor="human:board").values_list("action", flat=True))
        assert {"session.mode_opened", "session.mode_closed"} <= set(actions)

    @pytest.mark.parametrize("place", ["session", "agent"])
    def test_coding_that_a_person_closed_meanwhile_stays_closed(
        self, board, worker, session, company, place
    ):
        """Spec: modes 13, people 8: the page was read before another person closed it."""
        row = session if place == "session" else worker
        older = filled(board, act_page(row, "open-coding"), "act-form", reason=REASON)
        assert act(board, session, "open-coding").status_code == 302
        again = board.post(act_page(row, "open-coding"), older).content.decode()
        assert "changed after you read it" in again
        assert act(board, session, "close-coding").status_code == 302
        assert board.post(act_page(row, "open-coding"), older).status_code == 200
        assert (newest_event().action, newest_event().code) == ("human.denied", "VERSION_MISMATCH")
        assert company.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "chat_safe"
        assert act(board, row, "open-coding").status_code == 302

    def test_coding_is_closed_on_a_page_that_names_what_opened_it(self, board, session, company):
        """The contract's mode ends in all its sessions, until a person opens it again."""
        made = company.call(
            "it_manager", "create_contract", to="backend_worker", title="T", body="B", mode="coding"
        )
        contract = made.result["contract_id"]
        assert company.call("backend_worker", "accept_contract", contract_id=contract).code == "OK"
        html = board.get(act_page(session, "close-coding")).content.decode()
        assert contract in html.partition('class="nx-facts"')[2]

    def test_coding_is_opened_for_an_agent_that_never_called(self, board, worker, company):
        Session.objects.filter(agent=worker).delete()
        assert act(board, worker, "open-coding").status_code == 302
        assert company.get("/api/v1/me", "backend_worker").body["session"]["mode"] == "coding"
        assert Session.objects.get(agent=worker).standing
        assert "is not possible now" in board.get(act_page(worker, "open-coding")).content.decode()

    def test_coding_is_not_opened_for_a_deactivated_agent(self, board, worker, company):
        assert act(board, worker, "deactivate").status_code == 302
        assert "is not possible now" in board.get(act_page(worker, "open-coding")).content.decode()

    def test_coding_is_not_offered_where_the_organisation_has_it_not(self, board, company):
        from tests.company import load_company

        other = load_company("dev-team")
        other.get("/api/v1/me", "architect")
        session = Session.objects.get(organisation=other.organisation)
        page = act_page(session, "open-coding")
        assert "is not possible now" in board.get(page).content.decode()
        answer = board.post(page, {"reason": REASON, "version": 0})
        session.refresh_from_db()
        assert answer.status_code == 200
        assert session.mode == "chat_safe"
        assert (newest_event().action, newest_event().code) == ("human.denied", "MODE_DENIED")


class TestContracts:
    def test_are_issued_by_the_board_to_the_top_agent(self, board, company):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(
            board,
            page,
            "issue-form",
            title=HOSTILE,
            body="Do it.",
            to="ceo",
            deadline_0="2030-01-31",
            deadline_1="12:00:00",
        )
        answer = board.post(page, data)
        row = Contract.objects.get()
        assert answer.headers["Location"].endswith(f"/{row.id}/change/")
        assert (row.issuer, row.issuer_name, row.assignee.handle) == (None, "board", "ceo")
        assert row.title == HOSTILE
        assert row.deadline.isoformat() == "2030-01-31T12:00:00+00:00"
        assert Mail.objects.filter(contract_ref=row.id, to_agent="ceo").exists()
        event = Event.objects.get(action="contract.issued")
        assert event.actor == "human:board"
        assert "<script>document" not in board.get(change_page(row)).content.decode()

    def test_are_issued_and_cancelled_by_the_clock_of_the_database(
        self, board, company, monkeypatch
    ):
        """Spec: clocks 3."""
        now, machine = database_now(), timezone.now
        due = now + timedelta(minutes=30)
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B", to="ceo",
                      deadline_0=f"{due:%Y-%m-%d}", deadline_1=f"{due:%H:%M:%S}")  # fmt: skip
        monkeypatch.setattr(timezone, "now", lambda: machine() + timedelta(hours=1))
        board.post(page, data)
        assert act(board, Contract.objects.get(), "close-cancelled").status_code == 302
        row = Contract.objects.get()
        assert abs(row.created_at - now) < timedelta(minutes=10)
        assert abs(row.closed_at - now) < timedelta(minutes=10)

    def test_are_issued_once_however_often_a_form_is_sent(self, board, company):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B", to="ceo")
        refused = board.post(page, {**data, "title": ""})
        assert refused.status_code == 200
        board.post(page, values_of(refused, "issue-form", title="T"))
        again = board.post(page, data, follow=True)
        assert Contract.objects.count() == 1
        assert "nothing was done again" in again.content.decode()
        board.post(page, data)
        assert Contract.objects.count() == 1
        board.post(page, filled(board, page, "issue-form", title="T", body="B", to="ceo"))
        assert Contract.objects.count() == 2

    def test_are_decided_on_a_page_that_shows_the_work(self, board, company):
        """Another member of the Board may have sent back what the contract's page showed."""
        page = f"{ISSUE}?organisation={company.organisation.id}"
        board.post(page, filled(board, page, "issue-form", title="T", body="B", to="ceo"))
        row = Contract.objects.get()
        company.call("ceo", "accept_contract", contract_id=row.id)
        submits = {"type": "report", "contract_ref": row.id, "submits": True, "subject": "Paris"}
        for body in ("The first.", "The second."):
            company.call("ceo", "send_mail", to="board", body=body, **submits)
            for name in ("close-passed", "close-failed", "close-rework"):
                html = board.get(act_page(row, name)).content.decode()
                assert body in html
            act(board, row, "close-rework")

    def test_are_decided_on_a_page_that_names_the_files_that_came_with_the_work(
        self, board, company
    ):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        board.post(page, filled(board, page, "issue-form", title="T", body="B", to="ceo"))
        row = Contract.objects.get()
        company.call("ceo", "accept_contract", contract_id=row.id)
        note = company.call("ceo", "write_note", title="Paris", content="The plan.").result["path"]
        company.call(
            "ceo", "send_mail", to="board", type="report", subject="S", body="See the note.",
            contract_ref=row.id, submits=True,
            attachments=[{"path": note, "description": "Plan 7"}],
        )  # fmt: skip
        report = row.reports.get()
        for page in (
            *(act_page(row, name) for name in ("close-passed", "close-failed", "close-rework")),
            *(act_page(report.mail, name) for name in ("answer", "mark-read")),
        ):
            assert f"{note} Plan 7" in board.get(page).content.decode(), page

    def test_are_not_issued_for_a_person_who_signs_out_meanwhile(self, board, company, monkeypatch):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B", to="ceo")
        from contracts.admin import issuing

        issue = issuing.issue_for_board

        def late(**given):
            board.session.flush()
            return issue(**given)

        monkeypatch.setattr(issuing, "issue_for_board", late)
        assert board.post(page, data).status_code == 400
        assert not Contract.objects.exists()

    @pytest.mark.parametrize(
        ("failure", "status"), [("57P01", 503), ("53100", 507)], ids=["lost", "full"]
    )
    def test_are_not_called_misunderstood_where_the_database_fails(
        self, board, company, failure, status
    ):
        """Its advice would be to send the form once more, which may have been carried out."""
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B", to="ceo")
        board.raise_request_exception = False
        with connection.cursor() as cursor:
            cursor.execute(FAILING_SESSION % {"code": failure})
        assert board.post(page, data).status_code == status
        assert not Contract.objects.exists()

    def test_are_issued_once_where_another_form_is_sent_meanwhile(
        self, board, company, monkeypatch
    ):
        """The answer to the first one is on its way while the second one is carried out."""
        from contracts.admin import issuing

        page = f"{ISSUE}?organisation={company.organisation.id}"
        first, second = (
            filled(board, page, "issue-form", title=t, body="B", to="ceo") for t in "ab"
        )
        make = issuing.make_once

        def make_then_send_the_second(*given):
            monkeypatch.setattr(issuing, "make_once", make)
            made = make(*given)
            board.post(page, second)
            return made

        monkeypatch.setattr(issuing, "make_once", make_then_send_the_second)
        board.post(page, first)
        for form in (second, first):
            board.post(page, form)
        assert Contract.objects.count() == 2

    @pytest.mark.django_db(transaction=True)
    def test_are_issued_once_by_a_double_click(self, board, company):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B", to="ceo")

        def click():
            client = Client(HTTP_HOST="127.0.0.1")
            client.cookies = board.cookies
            return client.post(page, data).headers["Location"]

        assert len(set(at_once([click, click, click], raising=True))) == 2
        assert Contract.objects.count() == 1

    def test_are_issued_where_the_page_said(self, board, company):
        """Also where the address of the page named no organisation: there is only one now."""
        there = board.get(ISSUE).headers["Location"]
        assert there == f"?organisation={company.organisation.id}"

    def test_are_issued_to_nobody_else(self, board, company):
        page = f"{ISSUE}?organisation={company.organisation.id}"
        data = filled(board, page, "issue-form", title="T", body="B")
        answer = board.post(page, {**data, "to": "backend_worker"})
        assert answer.status_code == 200
        assert not Contract.objects.exists()

    def test_are_not_cancelled_by_a_form_out_of_date_which_begins_with_why(self, board, order):
        """The page opens at the reason: it is read out, and the next key leads on to the form."""
        page = act_page(order, "close-cancelled")
        assert "autofocus" not in board.get(page).content.decode()
        html = act(board, order, "close-cancelled", version="7").content.decode()
        problem = html.split('<div role="alert" tabindex="-1" autofocus>')[1].split("</form>")[0]
        assert "changed after you read it" in problem

    def test_are_cancelled_by_the_board_with_a_reason_and_a_version(self, board, order):
        page = act_page(order, "close-cancelled")
        stale = filled(board, page, "act-form", reason=REASON, version="7")
        answer = board.post(page, stale)
        order = Contract.objects.get(id=order.id)
        assert (answer.status_code, order.state) == (200, "pending")
        assert newest_event().code == "VERSION_MISMATCH"
        assert act(board, order, "close-cancelled").status_code == 302
        order = Contract.objects.get(id=order.id)
        assert (order.state, order.closed_by, order.closed_reason) == (
            "cancelled",
            "human:board",
            REASON,
        )
        assert "is not possible now" in board.get(page).content.decode()

    def test_show_their_history_from_the_ledger(self, board, observer, order):
        act(board, order, "close-cancelled")
        html = observer.get(change_page(order)).content.decode()
        assert "contract.issued" in html
        assert "contract.cancelled" in html
        assert REASON in html


class TestReasons:
    @pytest.mark.parametrize("reason", ["", "   ", "\n\t"])
    def test_are_never_empty(self, board, worker, session, order, reason):
        seq = newest_event().seq
        for row, name in everything(worker, session, order):
            assert act(board, row, name, reason=reason).status_code == 200
        assert newest_event().seq == seq


def everything(worker, session, order):
    """Every act with a row it could be done to."""
    key = ApiKey.objects.filter(agent=worker).first()
    return [
        (worker, "issue-key"),
        (worker, "deactivate"),
        (worker, "open-coding"),
        (key, "revoke"),
        (session, "open-coding"),
        (order, "close-cancelled"),
    ]


class TestWhoMay:
    """Group by act by method: the whole table, by hand."""

    MAY = {
        "issue-key": {PeopleGroup.BOARD},
        "deactivate": {PeopleGroup.BOARD, PeopleGroup.HR},
        "revoke": {PeopleGroup.BOARD},
        "open-coding": {PeopleGroup.BOARD},
        "close-cancelled": {PeopleGroup.BOARD},
    }

    @pytest.mark.parametrize(
        "desk", [None, PeopleGroup.OBSERVER, PeopleGroup.REVIEWER, PeopleGroup.HR]
    )
    def test_others_are_refused_change_nothing_and_leave_one_event_each(
        self, sign_in, worker, session, order, desk
    ):
        client = sign_in(desk)
        for row, name in everything(worker, session, order):
            if desk in self.MAY[name]:
                continue
            before = Event.objects.count()
            page = act_page(row, name)
            assert client.get(page).status_code == 403, (desk, name)
            assert Event.objects.count() == before
            assert client.post(page, {"reason": REASON}).status_code == 403, (desk, name)
            assert Event.objects.count() == before + 1
            assert (newest_event().action, newest_event().code) == ("human.denied", "NOT_YOURS")
            assert newest_event().actor == f"human:{str(desk or 'nobody').lower()}"
        assert ApiKey.objects.filter(agent=worker).count() == 1
        assert ApiKey.objects.get(agent=worker).revoked_at is None
        assert Agent.objects.get(id=worker.id).active
        assert Session.objects.get(id=session.id).mode == "chat_safe"
        assert Contract.objects.get(id=order.id).state == "pending"
        issue = f"{ISSUE}?organisation={order.organisation_id}"
        assert {client.get(issue).status_code, client.post(issue, {}).status_code} == {403}

    @pytest.mark.parametrize("desk", [None, PeopleGroup.OBSERVER, PeopleGroup.REVIEWER])
    def test_only_the_board_and_hr_edit(self, sign_in, company, worker, desk):
        client = sign_in(desk)
        role = worker.role
        for page, kind in [(change_page(role), "change"), (f"{list_page(type(role))}add/", "add")]:
            answer = client.post(page, {"title": "X", "reason": REASON, "seen_version": "1"})
            assert answer.status_code == 403, kind
        assert client.post(change_page(role).replace("change", "delete"), {}).status_code == 403
        role.refresh_from_db()
        assert role.title == "Backend Worker"

    def test_every_act_names_a_right_that_a_group_has(self, groups):
        from django.contrib.auth.models import Permission

        pages = [page for page in admin.site._registry.values() if hasattr(page, "all_acts")]
        assert len(pages) > 10
        for page in pages:
            for each in page.all_acts():
                app, _, codename = each.permission.partition(".")
                right = Permission.objects.get(content_type__app_label=app, codename=codename)
                assert right.group_set.exists(), each.permission

    def test_buttons_are_shown_to_who_may_only(self, board, observer, worker):
        page = change_page(worker)
        assert "/deactivate/" in board.get(page).content.decode()
        assert "/deactivate/" not in observer.get(page).content.decode()

    def test_a_post_without_its_token_is_refused(self, groups, sign_in, worker):
        """CSRF on every page that acts."""
        client = sign_in(PeopleGroup.BOARD)
        client.handler.enforce_csrf_checks = True
        for page in [
            act_page(worker, "deactivate"),
            act_page(worker, "issue-key"),
            change_page(worker),
            ISSUE,
            "/admin/auth/user/add/",
        ]:
            assert client.post(page, {"reason": REASON}).status_code == 403, page
        worker.refresh_from_db()
        assert worker.active


class TestSkills:
    @pytest.fixture
    def skill(self, db, tmp_path, settings):
        from django.utils import timezone

        from core.actors import System
        from workspace.models import Skill
        from workspace.skills.services import scan

        folder = tmp_path / "skills"
        (folder / "greet").mkdir(parents=True)
        (folder / "greet" / "SKILL.md").write_text(
            "---\nname: greet\ndescription: Says hello.\n---\nHello.\n!`echo hello`\n"
        )
        settings.NEXUS_SKILL_FOLDERS = [folder]
        scan(caller=System(name="tests", organisation_id=0), now=timezone.now())
        return Skill.objects.get(name="greet")

    def test_are_approved_by_the_board_after_reading_the_very_file(self, board, skill):
        page = act_page(skill, "approve")
        html = board.get(page).content.decode()
        assert skill.digest in html
        assert "Hello." in html
        assert act(board, skill, "approve").status_code == 302
        skill.refresh_from_db()
        assert (skill.approved, skill.approved_by) == (True, "human:board")
        assert (newest_event().action, newest_event().reason) == ("skill.approved", REASON)
        assert "skill.approved" in board.get(page.replace("approve", "history")).content.decode()
        assert act(board, skill, "withdraw").status_code == 302
        skill.refresh_from_db()
        assert not skill.approved

    def test_that_changed_since_they_were_read_are_refused(self, board, skill):
        page = act_page(skill, "approve")
        data = filled(board, page, "act-form", reason=REASON)
        path = Path(skill.path)
        path.write_text(path.read_text() + "!`rm -rf .`\n")
        answer = board.post(page, data)
        skill.refresh_from_db()
        assert answer.status_code == 200
        assert "no longer the file that was read" in answer.content.decode()
        assert not skill.approved
        assert (newest_event().action, newest_event().code) == ("human.denied", "VERSION_MISMATCH")

    def test_that_another_person_approved_again_meanwhile_stay_approved(self, board, skill):
        """Spec: people 8: nobody who withdraws has read this file."""
        act(board, skill, "approve")
        page = act_page(skill, "withdraw")
        form = filled(board, page, "act-form", reason=REASON)
        assert skill.digest in board.get(page).content.decode()
        path = Path(skill.path)
        path.write_text(path.read_text() + "!`date`\n")
        board.post(act_page(skill, "look-again"))
        act(board, skill, "approve")
        assert "changed after you read it" in board.post(page, form).content.decode()
        skill.refresh_from_db()
        assert skill.approved
        assert act(board, skill, "withdraw").status_code == 302
        skill.refresh_from_db()
        assert not skill.approved

    def test_whose_approval_was_withdrawn_meanwhile_are_not_approved(self, board, skill):
        """Spec: people 8: another person had a reason that this one has not read."""
        page = act_page(skill, "approve")
        form = filled(board, page, "act-form", reason=REASON)
        act(board, skill, "approve")
        assert "changed after you read it" in board.post(page, form).content.decode()
        act(board, skill, "withdraw")
        assert "changed after you read it" in board.post(page, form).content.decode()
        skill.refresh_from_db()
        assert not skill.approved
        assert act(board, skill, "approve").status_code == 302

    def test_are_looked_at_again_where_the_file_is_another(self, board, observer, skill):
        act(board, skill, "approve")
        look, path = act_page(skill, "look-again"), Path(skill.path)
        html = board.get(change_page(skill)).content.decode()
        assert look not in html
        assert "as shown here" in html
        path.write_text(path.read_text() + "!`date`\n")
        for page in (change_page(skill), list_page(type(skill))):
            assert re.search(r">\s*changed\s*<", observer.get(page).content.decode())
        html = board.get(change_page(skill)).content.decode()
        assert "another one than is shown here" in html
        assert look in html
        assert look not in observer.get(change_page(skill)).content.decode()
        assert observer.post(look).status_code == 403
        assert board.post(look).status_code == 302
        assert (newest_event().action, newest_event().actor) == ("skill.changed", "human:board")
        assert "date" in board.get(act_page(skill, "approve")).content.decode()
        assert act(board, skill, "approve").status_code == 302
        html = board.get(change_page(skill)).content.decode()
        assert re.search(r">\s*approved\s*<", html)
        assert look not in html

    def test_that_nobody_saw_yet_are_found_from_the_list(self, board, observer, skill):
        skill.delete()
        page = f"{list_page(type(skill))}look-again/"
        assert page in board.get(list_page(type(skill))).content.decode()
        assert page not in observer.get(list_page(type(skill))).content.decode()
        assert observer.post(page).status_code == 403
        assert "skill folders are read again" in board.get(page).content.decode()
        assert not type(skill).objects.exists()
        assert board.post(page).status_code == 302
        assert type(skill).objects.get().name == "greet"
        assert (newest_event().action, newest_event().actor) == ("skill.found", "human:board")

    def test_whose_file_is_gone_are_shown_so(self, board, skill):
        Path(skill.path).unlink()
        assert re.search(r">\s*gone\s*<", board.get(change_page(skill)).content.decode())
        assert board.post(act_page(skill, "look-again")).status_code == 302
        skill.refresh_from_db()
        assert not skill.installed

    @pytest.mark.parametrize(
        "desk", [None, PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER]
    )
    def test_are_approved_by_nobody_else(self, sign_in, skill, desk):
        answer = sign_in(desk).post(
            act_page(skill, "approve"), {"reason": REASON, "digest": skill.digest}
        )
        skill.refresh_from_db()
        assert answer.status_code == 403
        assert not skill.approved


class TestWhatIsSentTwice:
    def twice(self, board, row, name, **changes):
        page = act_page(row, name)
        form = filled(board, page, "act-form", **changes)
        assert board.post(page, {**form, next(iter(changes)): ""}).status_code == 200
        board.post(page, form)
        again = board.post(page, form, follow=True)
        assert "nothing was done again" in again.content.decode()

    def test_is_one_entry_of_a_memory(self, board, company):
        assert company.call("ceo", "memory_append", text="Fridays are quiet.").code == "OK"
        self.twice(board, Memory.objects.get(), "add", text="Mondays are not.")
        assert Memory.objects.count() == 2

    @pytest.mark.parametrize("name", ["add", "correct", "withdraw"])
    def test_is_kept_on_a_page_that_says_whose_memory_it_is(self, board, company, name):
        assert company.call("backend_worker", "memory_append", text="Fridays.").code == "OK"
        html = board.get(act_page(Memory.objects.get(), name)).content.decode()
        facts = html.partition('class="nx-facts"')[2].partition("</dl>")[0]
        assert company.organisation.name in facts
        assert "agents/backend_worker/MEMORY.md" in facts

    def test_is_one_answer_to_a_report(self, board, company):
        report = {"type": "report", "subject": "S", "body": "B"}
        assert company.call("ceo", "send_mail", to="board", **report).code == "OK"
        before = Mail.objects.count()
        self.twice(board, Mail.objects.get(recipient=None), "answer", reply="Thank you.")
        assert Mail.objects.count() == before + 1
