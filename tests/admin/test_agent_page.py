"""The page of one agent: what it does and may do, bounded, and no more than a person may open."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from core.decision import Allow
from core.permissions import PeopleGroup
from nexus_site.company import agent_page
from nexus_site.company.agent_rights import rights_of
from orgchart.explaining import CallQuestion, explain
from orgchart.keys import issue_key
from orgchart.models import ToolOverride
from orgchart.policy.vocabulary import ToolMode
from orgchart.tool_restrictions import save_tool_restriction
from tests.admin.places import change_page
from tests.browser.day import day_of
from toolbox.registry import REGISTRY


@pytest.fixture
def played(company):
    return day_of(company)


def page_of(client, company, handle="backend_worker", **query):
    answer = client.get(change_page(company.agent(handle)), query)
    assert answer.status_code == 200
    return answer.content.decode()


def section(html, name):
    found = re.search(
        rf'<section class="nx-card[^"]*" id="{name}">(.*?)</section>', html, re.DOTALL
    )
    return found and found.group(1)


class TestThePage:
    def test_says_what_the_agent_does_now(self, board, company, played):
        html = page_of(board, company, "it_manager")
        assert played["it"] in html
        assert "Rebuild the search service" in html
        assert "Messages only" in html
        assert "<code>chat_safe</code>" in html
        assert section(html, "contracts")
        assert section(html, "mail")

    def test_lists_refusals_with_their_rule_and_leads_to_all_of_them(self, board, company):
        company.call("backend_worker", "send_mail", to="ceo", type="info", subject="S", body="B")
        refused = section(page_of(board, company), "refusals")
        assert "CONTACT_DENIED" in refused
        address = re.search(r'href="([^"]+)" aria-label="All', refused).group(1)
        listed = board.get(address.replace("&amp;", "&")).content.decode()
        assert "CONTACT_DENIED" in listed
        assert "agent:it_manager" not in re.search(
            r'id="result_list".*?</table>', listed, re.DOTALL
        ).group(0)

    @pytest.mark.parametrize("name", ["contracts", "mail", "tasks", "frames", "keys", "sessions"])
    def test_leads_from_every_list_to_the_whole_of_it(self, board, company, played, name):
        html = section(page_of(board, company, "backend_worker"), name)
        address = re.search(r'href="([^"]+)" aria-label="All', html).group(1).replace("&amp;", "&")
        answer = board.get(address)
        assert answer.status_code == 200, address
        shown = re.search(r'id="result_list".*?</table>', answer.content.decode(), re.DOTALL)
        shown = shown.group(0) if shown else ""
        assert ">frontend_worker<" not in shown

    def test_shows_nobody_what_they_may_not_open_elsewhere(self, hr, observer, company, played):
        html = page_of(hr, company, "it_manager")
        for name in ("contracts", "mail", "refusals", "timeline"):
            assert section(html, name) is None
            assert section(page_of(observer, company, "it_manager"), name)
        for name in ("keys", "sessions", "rights", "tools"):
            assert section(html, name)

    def test_offers_its_form_to_those_who_may_change_it(self, board, observer, company):
        assert 'id="agent_form"' not in page_of(board, company)
        assert 'href="?edit=1"' in page_of(board, company)
        assert 'id="agent_form"' in page_of(board, company, edit="1")
        assert 'href="?edit=1"' not in page_of(observer, company)
        assert 'id="agent_form"' not in page_of(observer, company, edit="1")

    def test_is_closed_to_other_organisations(self, board, company, nobody):
        assert nobody.get(change_page(company.agent("ceo"))).status_code == 403
        assert board.get("/admin/orgchart/agent/999999/change/").status_code == 404

    def test_is_bounded_and_asks_as_much_for_much_as_for_little(self, board, company, now):
        worker = company.agent("backend_worker")
        company.get("/api/v1/me", "backend_worker")
        page_of(board, company)
        with CaptureQueriesContext(connection) as before:
            page_of(board, company)
        person = company.person(PeopleGroup.BOARD)
        for number in range(30):
            issue_key(agent=worker, caller=person, now=now)
            company.call("backend_worker", "read_mail", mail_id=f"MAIL-{number}")
            issue_for_board(
                person=person, draft=ContractDraft(to="ceo", title="T", body="B"), now=now
            )
        page_of(board, company)  # which alarms ring is kept for some seconds only
        with CaptureQueriesContext(connection) as after:
            html = page_of(board, company)
        assert len(after) == len(before)
        assert len(after) <= 30, [query["sql"][:120] for query in after]
        assert section(html, "keys").count("<li>") == agent_page.MOST
        assert section(html, "refusals").count("<li>") == agent_page.MOST
        assert section(html, "timeline").count("<li ") == agent_page.MOST_EVENTS
        assert page_of(board, company, "ceo").count("Contracts") >= 1
        assert section(page_of(board, company, "ceo"), "contracts").count("<li>") == agent_page.MOST
        assert len(html.encode()) < 150_000

    def test_says_that_unread_mail_waits(self, board, company):
        company.call("backend_worker", "send_mail", to="ceo", type="info", subject="S", body="B")
        assert "unread" in section(page_of(board, company), "mail")


class TestItsRights:
    def test_are_what_the_rules_answer_for_every_tool_in_every_mode(self, company):
        policy = company.policy
        for agent in policy.agents.values():
            rights = rights_of(policy, agent)
            usable = {tool.name for found in rights.tools.values() for tool in found}
            for tool in REGISTRY.all():
                allowed = any(
                    isinstance(
                        explain(CallQuestion(policy=policy, agent=agent, tool=tool.name, mode=m)),
                        Allow,
                    )
                    for m in ToolMode
                )
                assert allowed == (tool.name in usable), (agent.handle, tool.name)

    def test_name_the_rule_that_takes_a_tool_away(self, board, company, now):
        agent = company.agent("backend_worker")
        save_tool_restriction(
            row=ToolOverride(
                organisation=company.organisation, tool="send_mail", agent=agent, modes=[]
            ),
            caller=company.person(PeopleGroup.BOARD), now=now, reason="r", expected_version=None,
        )  # fmt: skip
        taken = section(page_of(board, company), "taken-away")
        assert "send_mail" in taken
        assert "restricted tools" in taken

    def test_name_the_contact_rule_of_every_contact(self, company):
        rights = rights_of(company.policy, company.policy.agents["it_manager"])
        assert {c.handle for c in rights.contacts} == set(
            company.policy.contacts_of(company.policy.agents["it_manager"])
        )
        assert all(contact.rule.startswith("contact it_manager ->") for contact in rights.contacts)


def test_a_paused_agent_says_by_whom_and_why(board, company):
    worker = company.agent("backend_worker")
    page = change_page(worker).removesuffix("change/")
    assert board.post(f"{page}pause/", {"reason": "It repeats itself."}).status_code == 302
    html = page_of(board, company)
    assert "It repeats itself." in section(html, "paused")
    assert f"{page}resume/" in html
    assert timezone.now().strftime("%Y-%m-%d") in html
