"""Hiring, moving and leading: only what works is offered, nothing counts before its preview."""

import re

import pytest

from core.permissions import PeopleGroup
from orgchart.models import Agent, ApiKey, PendingChange, Role
from orgchart.policy_cache import current_policy
from tests.admin.forms import confirm, filled, preview
from tests.admin.places import act_page, change_page, edit_page
from tests.company import load_company

ADD = "/admin/orgchart/agent/add/"
REASON = "Two contracts wait for a second pair of hands."


def step(company, role=None, superior=None):
    address = f"{ADD}?organisation={company.organisation.id}"
    if role:
        address += f"&role={Role.objects.get(organisation=company.organisation, name=role).id}"
    if superior:
        above = superior if superior == "board" else company.agent(superior).id
        address += f"&reports_to={above}"
    return address


def links(html):
    return [
        found.replace("&amp;", "&")
        for found in re.findall(r'class="nx-choice" href="([^"]+)"', html)
    ]


class TestHiring:
    def test_leads_from_the_role_by_a_possible_superior_to_the_form(self, board, company):
        roles = links(board.get(step(company)).content.decode())
        assert len(roles) == len(company.policy.roles)
        html = board.get(step(company, "backend_worker")).content.decode()
        assert [link.partition("&reports_to=")[2] for link in links(html)] == [
            str(company.agent("it_manager").id)
        ]
        assert "no contact rule leads from backend_worker to ceo" in html
        form = board.get(ADD + links(html)[0]).content.decode()
        assert 'value="backend_worker_2"' in form
        assert "May write to" in form

    def test_ends_with_a_key_that_works(self, board, company):
        page = step(company, "backend_worker", "it_manager")
        seen = preview(board, page, "agent_form", reason=REASON)
        assert "backend_worker_2 acts as backend_worker" in seen.content.decode()
        assert not Agent.objects.filter(handle="backend_worker_2").exists()
        done = confirm(board, page, seen)
        assert "no-store" in done.headers["Cache-Control"]
        key = re.search(r"nxs_[\w-]{43}", done.content.decode()).group(0)
        company.keys["backend_worker_2"] = key
        sent = company.call(
            "backend_worker_2", "send_mail", to="it_manager", type="info", subject="S", body="B"
        )
        assert sent.code == "OK"
        assert key not in board.get(change_page(company.agent("backend_worker_2"))).content.decode()

    @pytest.mark.parametrize("superior", ["ceo", "hr_manager", "qa_worker", "board"])
    def test_offers_no_superior_that_would_not_work(self, board, company, superior):
        html = board.get(step(company, "backend_worker", superior)).content.decode()
        assert 'id="agent_form"' not in html
        assert links(html)

    @pytest.mark.parametrize("superior", ["", "hr_manager", "qa_worker"])
    def test_saves_none_that_reaches_nobody_or_reports_to_nobody(self, board, company, superior):
        page = step(company, "backend_worker", "it_manager")
        above = str(company.agent(superior).id) if superior else ""
        data = filled(board, page, "agent_form", reports_to=above, reason=REASON)
        expected = 200 if superior == "qa_worker" else 422  # a worker is no choice of the form
        assert board.post(page, data).status_code == expected
        assert board.post(page, {**data, "_confirm": "1"}).status_code == expected
        assert not Agent.objects.filter(handle="backend_worker_2").exists()
        assert not ApiKey.objects.filter(agent__handle="backend_worker_2").exists()

    def test_waits_for_a_second_person_where_there_is_one(self, sign_in, company):
        board, hr = sign_in(PeopleGroup.BOARD), sign_in(PeopleGroup.HR)
        page = step(company, "backend_worker", "it_manager")
        done = confirm(hr, page, preview(hr, page, "agent_form", reason=REASON))
        change = PendingChange.objects.get()
        assert done.url.endswith(f"/pendingchange/{change.pk}/change/")
        assert not Agent.objects.filter(handle="backend_worker_2").exists()
        assert not ApiKey.objects.filter(agent__handle="backend_worker_2").exists()
        page = act_page(change, "confirm")
        done = board.post(page, filled(board, page, "act-form", reason=REASON))
        key = re.search(r"nxs_[\w-]{43}", done.content.decode()).group(0)
        company.keys["backend_worker_2"] = key
        assert company.get("/api/v1/me", "backend_worker_2").status == 200

    def test_gives_no_key_to_a_name_that_is_taken(self, board, company):
        keys = ApiKey.objects.count()
        page = step(company, "backend_worker", "it_manager")
        data = filled(board, page, "agent_form", handle="backend_worker", reason=REASON)
        answer = board.post(page, {**data, "_confirm": "1"})
        assert "nxs_" not in answer.content.decode()
        assert ApiKey.objects.count() == keys

    def test_is_closed_to_who_may_not_hire(self, observer, company):
        assert observer.get(step(company)).status_code == 403


class TestMoving:
    @pytest.fixture
    def page(self, company):
        return change_page(company.agent("research_worker")).replace("change", "move")

    def test_shows_the_effects_and_then_moves(self, board, company):
        team = load_company("dev-team")
        agent = team.agent("architect")
        page = change_page(agent).replace("change", "move")
        html = board.get(page).content.decode()
        offered = set(re.findall(r'name="superior" value="([^"]+)"', html))
        assert "architect" not in offered
        assert "team-lead" not in offered

    def test_offers_only_superiors_that_it_could_reach(self, board, company, page):
        html = board.get(page).content.decode()
        assert 'name="superior"' not in html
        assert "could not reach it_manager" in html

    def test_of_what_cannot_work_is_refused(self, board, company, page):
        version = company.policy.version
        data = {"superior": "it_manager", "reason": REASON, "seen_version": version}
        assert board.post(page, data).status_code == 422
        assert board.post(page, {**data, "_confirm": "1"}).status_code == 422
        assert company.agent("research_worker").reports_to.handle == "product_manager"

    def test_below_a_deactivated_agent_is_refused(self, hr, company):
        """Nothing else tells it from staying: the next active agent above is the same."""
        Agent.objects.filter(handle="devops_worker").update(active=False)
        worker = company.agent("qa_worker")
        page = change_page(worker).replace("change", "move")
        version = company.policy.version
        data = {"superior": "devops_worker", "reason": REASON, "seen_version": version}
        seen = hr.post(page, data)
        assert "devops_worker is no active agent" in seen.content.decode()
        assert hr.post(page, {**data, "_confirm": "1"}).status_code == 422
        worker.refresh_from_db()
        assert worker.reports_to.handle == "it_manager"

    def test_of_another_column_leaves_an_agent_below_a_deactivated_one(self, board, company):
        gone, worker = company.agent("devops_worker"), company.agent("qa_worker")
        Agent.objects.filter(pk=gone.pk).update(active=False)
        Agent.objects.filter(pk=worker.pk).update(reports_to=gone)
        page = edit_page(worker)
        seen = preview(board, page, "agent_form", title="Scout", reason=REASON)
        assert confirm(board, page, seen).status_code == 302
        worker.refresh_from_db()
        assert (worker.title, worker.reports_to) == ("Scout", gone)

    def test_takes_effect_when_it_is_confirmed(self, board, company, now):
        second = hire(board, company, "it_manager", "ceo")
        worker = company.agent("qa_worker")
        page = change_page(worker).replace("change", "move")
        data = {
            "superior": second.handle,
            "reason": REASON,
            "seen_version": current_policy(company.organisation.id).version,
        }
        seen = board.post(page, data)
        assert seen.status_code == 200
        worker.refresh_from_db()
        assert worker.reports_to.handle == "it_manager"
        assert confirm(board, page, seen).status_code == 302
        worker.refresh_from_db()
        assert worker.reports_to == second

    def test_is_closed_to_who_may_not_change(self, observer, company, page):
        assert observer.get(page).status_code == 403
        assert observer.post(page, {"superior": "ceo", "reason": REASON}).status_code == 403


class TestTheFirstKey:
    def test_that_is_not_for_one_person_is_left_to_the_operator(self, board, company, monkeypatch):
        """The hire itself may name a contract in place of a second person; the key cannot."""
        role = Role.objects.get(name="it_manager")
        Role.objects.filter(pk=role.pk).update(tools=[*role.tools, "generate_contract"])
        monkeypatch.setattr("orgchart.keys.board_members", lambda _: {"board", "second"})
        second = hire(board, company, "it_manager", "ceo")
        assert second.role == role
        assert not second.keys.exists()
        said = board.get(change_page(second)).content.decode()
        assert f"Let the operator issue it: manage.py issue_key ORG {second.handle}" in said


def hire(client, company, role, superior):
    page = step(company, role, superior)
    confirm(client, page, preview(client, page, "agent_form", reason=REASON))
    return Agent.objects.order_by("-id").first()


class TestLeading:
    def test_is_given_to_a_member_after_the_preview(self, board, company):
        solo = load_company("soloqueue")
        member, leader = solo.agent("coding_architect"), solo.agent("coding_leader")
        page = change_page(member).replace("change", "lead")
        assert page in board.get(change_page(member)).content.decode()
        assert "prompt says that coding_leader leads" in board.get(page).content.decode()
        seen = preview(board, page, "lead-form", reason=REASON)
        assert solo.agent("coding_leader").is_leader
        assert confirm(board, page, seen).status_code == 302
        assert solo.agent(member.handle).is_leader
        assert not solo.agent(leader.handle).is_leader

    def test_is_no_page_of_the_leader_or_of_who_is_in_no_group(self, board, company):
        for agent in (company.agent("ceo"), load_company("soloqueue").agent("coding_leader")):
            assert board.get(change_page(agent).replace("change", "lead")).status_code == 404
