"""The company drawn, and the table of the contact matrix: true, bounded, for who may look."""

import re
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.models import Contract
from core.decision import Allow
from nexus_site.company import matrix
from nexus_site.company.state import states_of
from orgchart.explaining import ask_mail, explain
from orgchart.models import Agent, ContactRule
from orgchart.staffing import deactivate_agent
from tests.browser.day import day_of
from tests.company import load_company


def conditions(company):
    return {name: state.condition for name, state in states_of(company.organisation.id).items()}


class TestTheDrawing:
    def test_says_what_everybody_does_now(self, board, company, now):
        assert set(conditions(company).values()) == {"idle"}
        ids = day_of(company)
        found = states_of(company.organisation.id)
        assert found["it_manager"].work.id == ids["it"]
        assert found["it_manager"].condition in {"working", "waiting"}
        assert found["research_worker"].condition == "idle"
        html = board.get("/admin/company/").content.decode()
        for handle, state in found.items():
            assert f"/admin/orgchart/agent/{state.id}/change/" in html
            assert f"<b>{handle}</b>" in html

    def test_says_for_whom_an_agent_waits_until_it_is_answered(self, company):
        sent = company.call("devops_worker", "escalate", subject="Disk", body="Full.").result
        state = states_of(company.organisation.id)["devops_worker"]
        assert (state.condition, state.wait.on) == ("waiting", "it_manager")
        company.call(
            "it_manager", "send_mail", to="devops_worker", type="info",
            reply_to=sent["mail_id"], subject="Re: Disk", body="Buy one.",
        )  # fmt: skip
        assert conditions(company)["devops_worker"] == "idle"

    def test_keeps_who_is_deactivated_in_its_place(self, board, company, now):
        deactivate_agent(
            handle="research_worker", caller=company.person("Board"), now=now, reason="r"
        )
        assert conditions(company)["research_worker"] == "deactivated"
        assert "nx-is-deactivated" in board.get("/admin/company/").content.decode()

    def test_asks_as_much_for_many_agents_as_for_few(self, board, company):
        def asked(organisation):
            page = f"/admin/company/?organisation={organisation.id}"
            board.get(page)
            with CaptureQueriesContext(connection) as seen:
                assert board.get(page).status_code == 200
            return len(seen)

        small = load_company("constitution").organisation
        assert asked(company.organisation) == asked(small)

    def test_shows_titles_of_contracts_only_to_who_may_read_contracts(
        self, board, hr, company, now
    ):
        """Spec: people 52. Agents write these titles; the page of an agent follows, too."""
        ids = day_of(company)
        title = Contract.objects.get(id=ids["it"]).title
        agent = Agent.objects.get(organisation=company.organisation, handle="it_manager").id
        for page in ("/admin/company/", f"/admin/orgchart/agent/{agent}/change/"):
            assert title in board.get(page).content.decode()
            html = hr.get(page).content.decode()
            assert title.lower() not in html.lower()
            assert ids["it"] in html

    def test_is_for_who_may_look_at_the_organisation(self, hr, nobody, company):
        for page in ("/admin/company/", "/admin/matrix/"):
            assert hr.get(page).status_code == 200
            assert nobody.get(page).status_code == 403
        for odd in ("?organisation=x", "?organisation=99999999999999999999", "?of=agents&group=x"):
            assert hr.get(f"/admin/matrix/{odd}").status_code == 200


class TestTheMatrix:
    def test_of_agents_says_of_every_cell_what_the_rules_decide(self, company):
        policy = company.policy
        table = matrix.of_agents(policy)
        cells = [cell for _, cells in table.rows for cell in cells if not cell.is_self]
        assert len(cells) == 9 * 9
        for cell in cells:
            sender = policy.agents[cell.sender]
            for mail_type in policy.mail_types:
                if policy.mail_types[mail_type].issued_by:
                    continue
                asked = ask_mail(policy, sender, mail_type=mail_type, to=cell.recipient)
                decision = explain(asked)
                if cell.kind == "contract" and mail_type in cell.types:
                    assert decision.code == "CONTRACT_REQUIRED", (cell, mail_type)
                else:
                    allowed = isinstance(decision, Allow)
                    assert allowed == (mail_type in cell.types), (cell, mail_type)

    def test_of_roles_has_a_cell_for_every_contact_rule(self, company):
        table = matrix.of_roles(company.policy)
        ruled = {(c.sender, c.recipient) for _, cells in table.rows for c in cells if c.rule}
        assert ruled == set(company.policy.contacts)

    @pytest.mark.parametrize("of", ["roles", "agents"])
    def test_opens_the_rule_and_explain_from_a_cell(self, observer, company, of):
        page = {"of": of, "organisation": company.organisation.id}
        html = observer.get("/admin/matrix/", page).content.decode()
        href = re.search(r'href="(\?[^"]*from=backend_worker&amp;to=it_manager#cell)"', html).group(
            1
        )
        html = observer.get("/admin/matrix/" + href.replace("&amp;", "&")).content.decode()
        rule = ContactRule.objects.get(sender__name="backend_worker", recipient__name="it_manager")
        assert f"/admin/orgchart/contactrule/{rule.pk}/change/" in html
        explained = re.search(r'href="(/admin/explain/\?[^"]*type=question[^"]*)"', html).group(1)
        answer = observer.get(unquote(explained.replace("&amp;", "&"))).content.decode()
        assert "<strong>Allowed</strong>" in answer

    def test_explains_a_refusal_as_well(self, observer, company):
        page = "/admin/matrix/?of=agents&from=backend_worker&to=ceo"
        html = observer.get(f"{page}&organisation={company.organisation.id}").content.decode()
        assert "backend_worker may not write to ceo" in html
        explained = re.search(r'href="(/admin/explain/\?[^"]+)"', html).group(1)
        answer = observer.get(explained.replace("&amp;", "&")).content.decode()
        assert "Refused: May not contact this recipient" in answer
        assert "CONTACT_DENIED</code>" in answer

    def test_of_a_large_company_is_bounded_and_says_what_is_left_out(self, company, monkeypatch):
        monkeypatch.setattr(matrix, "MOST", 4)
        table = matrix.of_agents(company.policy)
        assert (len(table.rows), table.left_out) == (4, 5)
