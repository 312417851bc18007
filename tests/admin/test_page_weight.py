"""What pages weigh and ask for in a company of 1,000 agents: no more than a phone should load."""

import pytest
from django.contrib.admin import AdminSite
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from nexus_site.company import pages as company_pages
from nexus_site.company.drawing import nearest
from orgchart.models import Agent, Group, Organisation, Role
from tasks.models import Task
from tests.browser.day import fill_the_day, play
from tests.company import load_company

LIMIT = 150_000
"""Bytes of HTML, before compression."""
AGENTS = 1000
TASKS = 800
GROUPS = 3000


@pytest.fixture
def large(company):
    play(company)
    fill_the_day(company)
    organisation = company.organisation
    role = Role.objects.get(organisation=organisation, name="backend_worker")
    above = company.agent("it_manager")
    Agent.objects.bulk_create(
        Agent(
            organisation=organisation, handle=f"backend_worker_{number}", role=role,
            title="Backend Worker", reports_to=above,
        )
        for number in range(AGENTS)
    )  # fmt: skip
    Organisation.objects.filter(id=organisation.id).update(policy_version=F("policy_version") + 1)
    Task.objects.bulk_create(
        Task(
            organisation=organisation, number=number, subject=f"Task {number}: " + "word " * 10,
            status=("pending", "in_progress", "completed", "deleted")[number % 4],
            created_by="system:test", required_role="backend_worker", completed_at=timezone.now(),
        )
        for number in range(1, TASKS + 1)
    )  # fmt: skip
    return company


def test_every_page_of_a_large_company_is_light(board, large):
    organisation = large.organisation.id
    boss, worker = large.agent("it_manager"), large.agent("backend_worker")
    role = Role.objects.get(organisation=organisation, name="backend_worker")
    weights = {
        page: len(board.get(page).content)
        for page in (
            "/admin/",
            "/admin/orgchart/agent/",
            "/admin/ledger/event/",
            "/admin/mailroom/mail/",
            "/admin/contracts/contract/",
            f"/admin/company/?organisation={organisation}",
            f"/admin/company/?organisation={organisation}&top=it_manager",
            f"/admin/matrix/?of=agents&organisation={organisation}",
            f"/admin/explain/?organisation={organisation}",
            f"/admin/tasks/task/board/?organisation={organisation}",
            "/admin/tasks/task/",
            f"/admin/orgchart/agent/{boss.id}/change/",
            f"/admin/orgchart/agent/{worker.id}/change/",
            f"/admin/orgchart/agent/{worker.id}/change/?edit=1",
            f"/admin/orgchart/agent/{worker.id}/move/",
            f"/admin/orgchart/agent/add/?organisation={organisation}&role={role.id}",
            f"/admin/orgchart/agent/add/?role={role.id}&reports_to={boss.id}",
        )
    }
    assert {page: weight for page, weight in weights.items() if weight > LIMIT} == {}


def test_the_list_of_agents_offers_no_list_of_all_groups(board, company):
    Group.objects.bulk_create(
        Group(organisation=company.organisation, slug=f"team_{number}", name=f"Team {number}")
        for number in range(GROUPS)
    )
    assert len(board.get("/admin/orgchart/agent/").content) <= LIMIT


def test_the_drawing_says_how_many_it_leaves_out_and_leads_to_them(board, large):
    html = board.get(f"/admin/company/?organisation={large.organisation.id}").content.decode()
    assert html.count('class="nx-agent nx-is-') <= company_pages.MOST_CARDS
    assert "more below it_manager" in html
    assert "top=it_manager" in html
    html = board.get(
        f"/admin/company/?organisation={large.organisation.id}&top=it_manager"
    ).content.decode()
    assert f"reports_to__id__exact={large.agent('it_manager').id}" in html


def test_explain_still_answers_where_handles_are_typed(board, large):
    html = board.get(
        "/admin/explain/",
        {
            "ask": "mail", "organisation": large.organisation.id, "agent": "backend_worker_7",
            "recipient": "it_manager", "type": "info", "contract": "",
        },
    ).content.decode()  # fmt: skip
    assert "<strong>Allowed</strong>" in html


def test_a_page_asks_as_much_in_a_large_company_as_in_a_small_one(board, large):
    small = load_company("dev-team")

    def asked(page):
        board.get(page)
        with CaptureQueriesContext(connection) as seen:
            assert board.get(page).status_code == 200
        return len(seen)

    one = asked(f"/admin/orgchart/agent/{large.agent('it_manager').id}/change/")
    other = asked(f"/admin/orgchart/agent/{small.agent('architect').id}/change/")
    assert abs(one - other) <= 2, "the standing session of an agent that has called"


def test_a_page_collects_no_list_of_tables_that_it_does_not_show(board, company, monkeypatch):
    collected = []
    real = AdminSite._build_app_dict

    def build(site, request, label=None):
        collected.append(label)
        return real(site, request, label)

    monkeypatch.setattr(AdminSite, "_build_app_dict", build)
    for page in ("/admin/", "/admin/orgchart/role/", "/admin/matrix/"):
        assert board.get(page).status_code == 200
    assert collected == []
    assert board.get("/admin/orgchart/").status_code == 200
    assert collected == ["orgchart"]


class TestTheCut:
    BELOW = {"a": ["b", "c"], "b": ["d", "e"], "c": ["f"]}

    def test_takes_the_nearest_first_and_counts_what_is_missing(self):
        assert nearest("a", self.BELOW, 4) == ({"a": ["b", "c"], "b": ["d"]}, {"b": 1, "c": 1})

    def test_leaves_a_small_tree_whole(self):
        assert nearest("a", self.BELOW, 100) == (self.BELOW, {})

    def test_draws_an_agent_that_is_reached_twice_once(self):
        assert nearest("a", {"a": ["b"], "b": ["a"]}, 9) == ({"a": ["b"]}, {})
