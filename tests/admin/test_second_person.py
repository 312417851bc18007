"""A right that a person gives waits for a second person; each way around it is refused."""

import json

import pytest
from django.contrib.auth import get_user_model

from core.decision import Denied
from core.people import person_named
from core.permissions import PeopleGroup
from ledger.models import Event
from orgchart.models import (
    Agent,
    Alias,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    PendingChange,
    Role,
    ToolOverride,
)
from orgchart.policy_cache import current_policy
from orgchart.second_person import rules
from orgchart.second_person.edits import saving
from orgchart.second_person.services import confirm_change, propose_change
from orgchart.second_person.vocabulary import PendingState
from tests.admin.forms import confirm, preview
from tests.admin.places import change_page, edit_page, list_page, page_of
from tests.company import load_company
from tests.orgchart.world import NOW
from tests.rows import newest_event

REASON = "The new team needs it."


@pytest.fixture
def second(sign_in, groups, board):
    """A client of a second member of the Board."""
    client = sign_in(None)
    user = get_user_model().objects.get(username="nobody")
    user.groups.set([groups[PeopleGroup.BOARD]])
    return client


def proposed(client, page, form, **fields):
    """Propose a change as the pages do; the change that waits."""
    seen = preview(client, page, form, reason=REASON, **fields)
    assert "second-person" in seen.content.decode()
    answer = confirm(client, page, seen)
    assert answer.status_code == 302
    row = PendingChange.objects.first()
    assert answer.url == change_page(row)
    return row


def decide(client, row, act):
    return client.post(page_of(row, act), {"reason": "Looked at it.", "version": row.version})


def widen(client, rule):
    return proposed(client, change_page(rule), "contactrule_form", types=["info"])


def state(row):
    return PendingChange.objects.get(pk=row.pk).state


class TestProposal:
    def test_changes_nothing_and_is_recorded(self, hr, company, rule):
        before = (company.policy_version, rule.types)
        row = widen(hr, rule)
        rule.refresh_from_db()
        assert (company.policy_version, rule.types) == before
        assert (row.state, row.proposed_by) == (PendingState.PROPOSED, "hr")
        assert row.allowed == ["it_manager may send info to any hr_manager"]
        assert (newest_event().action, newest_event().actor, newest_event().reason) == (
            "change.proposed",
            "human:hr",
            REASON,
        )

    def test_is_made_once_by_a_form_that_is_sent_twice(self, hr, company, rule):
        page = change_page(rule)
        seen = preview(hr, page, "contactrule_form", reason=REASON, types=["info"])
        answers = [confirm(hr, page, seen) for _ in range(2)]
        row = PendingChange.objects.get()
        assert [answer.url for answer in answers] == [change_page(row)] * 2
        hr.post(page_of(row, "withdraw"), {"reason": "No.", "version": row.version})
        assert widen(hr, rule).pk != row.pk

    def test_is_not_needed_for_a_change_that_only_takes_rights_away(self, hr, company, rule):
        page = change_page(rule)
        seen = preview(hr, page, "contactrule_form", types=["tool_request"], reason=REASON)
        assert "second-person" not in seen.content.decode()
        confirm(hr, page, seen)
        rule.refresh_from_db()
        assert rule.types == ["tool_request"]
        assert not PendingChange.objects.exists()

    def test_is_needed_to_place_an_agent_that_was_deactivated(self, hr, company):
        """Both steps together would let another department read its contracts and reports."""
        gone = Agent.objects.get(handle="backend_worker")
        Agent.objects.filter(pk=gone.pk).update(active=False)
        above = Agent.objects.get(handle="product_manager")
        row = proposed(hr, edit_page(gone), "agent_form", reports_to=str(above.pk))
        assert row.allowed == ["product_manager reads what backend_worker left"]
        gone.refresh_from_db()
        assert gone.reports_to.handle == "it_manager"

    def test_is_needed_to_open_a_channel_that_carries_what_only_tools_issue(self, hr, company):
        """The frontend worker would read every task of the product manager."""
        rule = ContactRule.objects.get(
            sender__name="product_manager", recipient__name="frontend_worker"
        )
        changes = {"types": ["contract"], "needs_contract": None}
        row = proposed(hr, change_page(rule), "contactrule_form", **changes)
        assert row.allowed == ["product_manager may contact frontend_worker"]

    def test_is_not_needed_for_a_change_of_no_right(self, hr, company, role):
        page = change_page(role)
        confirm(hr, page, preview(hr, page, "role_form", title="Quality", reason=REASON))
        role.refresh_from_db()
        assert role.title == "Quality"

    def test_is_not_needed_by_the_only_member_of_the_board(self, board, company, rule):
        page = change_page(rule)
        seen = preview(board, page, "contactrule_form", types=["info"], reason=REASON)
        assert "You are the only member of the Board" in seen.content.decode()
        confirm(board, page, seen)
        rule.refresh_from_db()
        assert rule.types == ["info"]

    def test_is_needed_by_one_of_two_members_of_the_board(self, board, second, company, rule):
        row = widen(board, rule)
        assert decide(board, row, "confirm").status_code == 200
        assert state(row) == PendingState.PROPOSED
        assert decide(second, row, "confirm").status_code == 302
        assert state(row) == PendingState.CONFIRMED

    def test_of_what_breaks_an_invariant_is_refused(self, hr, company, role):
        answer = preview(
            hr,
            change_page(Role.objects.get(name="it_manager")),
            "role_form",
            tools=["send_mail", "write_verdict", "create_contract"],
            reason=REASON,
        )
        assert answer.status_code == 422
        assert not PendingChange.objects.exists()


class TestTheButtons:
    def test_are_those_that_work_for_who_looks(self, board, second, hr, company, rule):
        row = widen(board, rule)
        for client, offered in (
            (board, {"withdraw"}),
            (second, {"confirm", "reject"}),
            (hr, set()),
        ):
            shown = client.get(change_page(row)).content.decode()
            found = {act for act in ("confirm", "reject", "withdraw") if f"/{act}/" in shown}
            assert found == offered


class TestConfirmation:
    def test_takes_effect_once_and_names_both_people(self, hr, board, company, rule):
        row = widen(hr, rule)
        assert decide(board, row, "confirm").status_code == 302
        rule.refresh_from_db()
        assert rule.types == ["info"]
        assert state(row) == PendingState.CONFIRMED
        change = Event.objects.get(action="contact.changed")
        assert (change.actor, change.details["confirmed_by"]) == ("human:hr", "human:board")
        assert (newest_event().action, newest_event().actor) == ("change.confirmed", "human:board")
        after = company.policy_version
        decide(board, row, "confirm")
        assert company.policy_version == after
        assert newest_event().code == "INVALID_TRANSITION"

    @pytest.mark.parametrize("act", ["confirm", "reject"])
    def test_is_not_for_hr(self, hr, company, rule, act):
        row = widen(hr, rule)
        assert decide(hr, row, act).status_code == 403
        assert state(row) == PendingState.PROPOSED
        assert newest_event().code == "NOT_YOURS"

    def test_is_not_for_the_proposer_who_joined_the_board(self, hr, board, company, groups, rule):
        """HR that is a member of the Board too, or becomes one, still needs another person."""
        row = widen(hr, rule)
        get_user_model().objects.get(username="hr").groups.add(groups[PeopleGroup.BOARD])
        decide(hr, row, "confirm")
        assert state(row) == PendingState.PROPOSED
        assert newest_event().code == "NOT_YOURS"

    def test_of_another_difference_is_refused_and_makes_it_stale(self, hr, board, company, rule):
        row = widen(hr, rule)
        MailTypeRule.objects.filter(name="info").update(senders=["ceo"])
        Organisation.objects.update(policy_version=company.policy_version + 1)
        assert decide(board, row, "confirm").status_code == 200
        rule.refresh_from_db()
        assert rule.types != ["info"]
        assert state(row) == PendingState.STALE
        assert Event.objects.filter(action="change.stale").exists()

    def test_of_an_agent_that_was_instructed_meanwhile_makes_it_stale(self, hr, board, company):
        """HR writes prompts alone: not those of an agent that the Board gives a place just now."""
        agent = Agent.objects.get(handle="qa_worker")
        other = Agent.objects.get(handle="product_manager")
        row = proposed(hr, edit_page(agent), "agent_form", co_managers=[str(other.pk)])
        page, words = edit_page(agent), "Do what HR says."
        confirm(hr, page, preview(hr, page, "agent_form", system_prompt=words, reason=REASON))
        agent.refresh_from_db()
        assert agent.system_prompt == words
        decide(board, row, "confirm")
        assert state(row) == PendingState.STALE
        assert not agent.co_managers.exists()

    @pytest.mark.parametrize("table", [Agent, Role])
    def test_of_who_orders_changes_with_words_of_meanwhile_makes_it_stale(
        self, hr, board, company, table
    ):
        """Spec: people 60: HR writes these words alone until somebody comes to order changes."""
        agent = Agent.objects.get(handle="it_manager")
        tools = [*agent.role.tools, "generate_contract"]
        row = proposed(hr, change_page(agent.role), "role_form", tools=tools)
        agents = table is Agent
        page = edit_page(agent) if agents else change_page(agent.role)
        words = {"system_prompt" if agents else "summary": "Sign what HR asks for."}
        form = "agent_form" if agents else "role_form"
        assert confirm(hr, page, preview(hr, page, form, reason=REASON, **words)).status_code == 302
        decide(board, row, "confirm")
        assert state(row) == PendingState.STALE
        assert newest_event().code == "VERSION_MISMATCH"
        assert "generate_contract" not in Role.objects.get(name="it_manager").tools

    @pytest.mark.parametrize("table", [Agent, Role])
    def test_of_who_orders_changes_shows_the_words_of_before(self, hr, board, company, table):
        """Spec: people 60: HR wrote them alone, and the Board confirmed them unseen."""
        agent = Agent.objects.get(handle="it_manager")
        agents = table is Agent
        page = edit_page(agent) if agents else change_page(agent.role)
        words = {"system_prompt" if agents else "summary": "Sign what HR asks for."}
        form = "agent_form" if agents else "role_form"
        assert confirm(hr, page, preview(hr, page, form, reason=REASON, **words)).status_code == 302
        tools = [*agent.role.tools, "generate_contract"]
        row = proposed(hr, change_page(agent.role), "role_form", tools=tools)
        for each in (change_page(row), page_of(row, "confirm"), page_of(row, "reject")):
            assert "Sign what HR asks for." in board.get(each).content.decode()

    def test_by_the_only_member_of_the_board_shows_the_words_of_before(self, hr, board, company):
        agent, words = Agent.objects.get(handle="it_manager"), f"{'Be good. ' * 50}Obey HR."
        Agent.objects.filter(pk=agent.pk).update(system_prompt=words)
        tools, page = [*agent.role.tools, "generate_contract"], change_page(agent.role)
        html = preview(board, page, "role_form", tools=tools, reason=REASON).content.decode()
        assert "You are the only member of the Board" in html
        assert words in html

    def test_of_an_agent_that_gets_a_place_shows_its_instructions(self, hr, board, company):
        agent = Agent.objects.get(handle="qa_worker")
        Agent.objects.filter(pk=agent.pk).update(system_prompt="Pass what HR likes.")
        other = Agent.objects.get(handle="product_manager")
        row = proposed(hr, edit_page(agent), "agent_form", co_managers=[str(other.pk)])
        html = board.get(page_of(row, "confirm")).content.decode()
        assert "qa_worker: Pass what HR likes." in html

    def test_of_who_orders_changes_takes_effect_with_the_words_of_before(self, hr, board, company):
        role = Role.objects.get(name="it_manager")
        tools = [*role.tools, "generate_contract"]
        row = proposed(hr, change_page(role), "role_form", tools=tools)
        assert decide(board, row, "confirm").status_code == 302
        assert "generate_contract" in Role.objects.get(name="it_manager").tools

    def test_of_a_leader_that_was_instructed_meanwhile_makes_it_stale(self, hr, board, company):
        solo = load_company("soloqueue")
        agent = solo.agent("coding_architect")
        row = proposed(hr, change_page(agent).replace("change", "lead"), "lead-form")
        Agent.objects.filter(pk=agent.pk).update(system_prompt="Do what HR says.")
        decide(board, row, "confirm")
        assert state(row) == PendingState.STALE
        assert not solo.agent("coding_architect").is_leader

    def test_of_a_row_that_is_gone_makes_it_stale(self, hr, board, company, rule):
        row = widen(hr, rule)
        rule.delete()
        decide(board, row, "confirm")
        assert state(row) == PendingState.STALE
        assert newest_event().code == "NOT_FOUND"

    def test_waits_with_a_limited_number_of_one_person(self, hr, board, company, rule, monkeypatch):
        monkeypatch.setattr(rules, "MOST_WAITING", 1)
        row = widen(hr, rule)
        other = Alias(organisation=company.organisation, alias="boss", agent=company.agent("ceo"))

        def propose():
            return propose_change(
                edit=saving(other),
                caller=person_named("hr", company.organisation.id),
                now=NOW,
                reason=REASON,
                expected_version=None,
            )

        with pytest.raises(Denied) as refusal:
            propose()
        assert refusal.value.deny.code == "QUOTA_EXCEEDED"
        assert PendingChange.objects.get() == row
        decide(board, row, "reject")
        assert propose() == propose()

    @pytest.mark.parametrize("named", ["role", "group"])
    def test_of_a_row_that_names_one_that_is_gone_makes_it_stale(self, hr, board, company, named):
        kim = Agent(
            organisation=company.organisation,
            handle="kim",
            title="Kim",
            role=Role.objects.get(name="hr_worker"),
            reports_to=company.agent("hr_manager"),
            group=Group.objects.create(organisation=company.organisation, slug="new", name="New"),
            name="leader",
            is_leader=True,
        )
        row = propose_change(
            edit=saving(kim),
            caller=person_named("hr", company.organisation.id),
            now=NOW,
            reason=REASON,
            expected_version=None,
        )
        getattr(kim, named).delete()
        assert decide(board, row, "confirm").status_code == 200
        assert state(row) == PendingState.STALE
        assert newest_event().code == "NOT_FOUND"

    def test_keeps_what_others_changed_meanwhile(self, hr, board, company, rule):
        row = widen(hr, rule)
        ContactRule.objects.filter(pk=rule.pk).update(needs_contract=False)
        Role.objects.filter(name="qa_worker").update(title="Quality")
        decide(board, row, "confirm")
        assert state(row) == PendingState.CONFIRMED
        assert Role.objects.get(name="qa_worker").title == "Quality"

    def test_checks_every_invariant_again(self, hr, board, company):
        role, above = Role.objects.get(name="qa_worker"), company.agent("it_manager")
        place = f"organisation={company.organisation.id}&role={role.id}&reports_to={above.id}"
        page = f"{list_page(Agent)}add/?{place}"
        row = proposed(hr, page, "agent_form", handle="qa_two", title="Second")
        ContactRule.objects.filter(sender__name="qa_worker").delete()
        decide(board, row, "confirm")
        assert not Agent.objects.filter(handle="qa_two").exists()
        assert state(row) == PendingState.STALE
        assert newest_event().details["rule"] == "way up"

    def test_of_a_proposer_without_rights_any_more_is_refused(self, hr, board, company, rule):
        row = widen(hr, rule)
        get_user_model().objects.get(username="hr").groups.clear()
        decide(board, row, "confirm")
        rule.refresh_from_db()
        assert rule.types != ["info"]
        assert state(row) == PendingState.STALE

    def test_of_a_proposer_who_cannot_sign_in_any_more_is_refused(self, hr, board, company, rule):
        row = widen(hr, rule)
        get_user_model().objects.filter(username="hr").update(is_staff=False)
        decide(board, row, "confirm")
        rule.refresh_from_db()
        assert rule.types != ["info"]
        assert state(row) == PendingState.STALE

    def test_asks_for_a_reason_and_the_version_looked_at(self, hr, board, company, rule):
        row = widen(hr, rule)
        board.post(page_of(row, "confirm"), {"reason": " ", "version": row.version})
        board.post(page_of(row, "confirm"), {"reason": "r", "version": row.version + 1})
        assert state(row) == PendingState.PROPOSED
        assert newest_event().code == "VERSION_MISMATCH"

    def test_of_another_organisation_is_not_found(self, hr, board, company, rule):
        row = widen(hr, rule)
        other = load_company("dev-team")
        with pytest.raises(Denied) as refused:
            confirm_change(
                change_id=row.pk,
                expected_version=None,
                caller=person_named("board", other.organisation.id),
                now=NOW,
                reason="r",
            )
        assert refused.value.deny.code == "NOT_FOUND"


class TestOtherDecisions:
    def test_reject_changes_nothing(self, hr, board, company, rule):
        row = widen(hr, rule)
        assert decide(board, row, "reject").status_code == 302
        assert state(row) == PendingState.REJECTED
        decide(board, row, "confirm")
        assert state(row) == PendingState.REJECTED

    def test_withdraw_is_the_proposers(self, hr, board, company, rule):
        row = widen(hr, rule)
        decide(board, row, "withdraw")
        assert state(row) == PendingState.PROPOSED
        assert decide(hr, row, "withdraw").status_code == 302
        assert state(row) == PendingState.WITHDRAWN

    def test_each_page_opens(self, hr, board, company, rule):
        row = widen(hr, rule)
        for client in (hr, board):
            assert client.get(list_page(PendingChange)).status_code == 200
            assert client.get(change_page(row)).status_code == 200
        for act in ("confirm", "reject", "withdraw"):
            html = board.get(page_of(row, act)).content.decode()
            assert act == "withdraw" or "it_manager may send info" in html


class TestEveryTable:
    """HR's change on each table that gives a right: proposed, then made by the same service."""

    def test_roles(self, hr, board, company):
        role = Role.objects.get(name="research_worker")
        fields = {"tools": [*role.tools, "read_file"]}
        decide(board, proposed(hr, change_page(role), "role_form", **fields), "confirm")
        role.refresh_from_db()
        assert "read_file" in role.tools

    def test_agents_with_their_links(self, hr, board, company):
        agent = company.agent("backend_worker")
        manager = company.agent("product_manager")
        fields = {"co_managers": [str(manager.id)]}
        row = proposed(hr, edit_page(agent), "agent_form", **fields)
        assert agent.co_managers.count() == 0
        decide(board, row, "confirm")
        assert list(agent.co_managers.all()) == [manager]

    def test_mail_types(self, hr, board, company):
        kind = MailTypeRule.objects.get(name="tech_review")
        fields = {"senders": ["it_manager", "product_manager"]}
        decide(board, proposed(hr, change_page(kind), "mailtyperule_form", **fields), "confirm")
        kind.refresh_from_db()
        assert kind.senders == ["it_manager", "product_manager"]

    def test_restrictions_that_are_taken_back(self, hr, board, company):
        page = f"{list_page(ToolOverride)}add/?organisation={company.organisation.id}"
        fields = {"tool": "run_test", "role": str(Role.objects.get(name="qa_worker").id)}
        confirm(hr, page, preview(hr, page, "tooloverride_form", reason=REASON, **fields))
        made = ToolOverride.objects.get()
        row = proposed(hr, page_of(made, "delete"), "removal-form")
        assert ToolOverride.objects.exists()
        decide(board, row, "confirm")
        assert not ToolOverride.objects.exists()

    def test_activation(self, hr, board, company):
        agent = company.agent("qa_worker")
        hr.post(page_of(agent, "deactivate"), {"reason": "r", "version": company.policy_version})
        agent.refresh_from_db()
        assert not agent.active, "a deactivation needs no second person"
        hr.post(page_of(agent, "activate"), {"reason": "r", "version": company.policy_version})
        agent.refresh_from_db()
        assert not agent.active
        decide(board, PendingChange.objects.get(), "confirm")
        agent.refresh_from_db()
        assert agent.active

    @pytest.mark.parametrize(
        "value",
        [
            "[1]",
            '"x"',
            '{"claim_task_type": 7}',
            '{"other": true}',
            "[" * 3000,
            "1" * 5000,
            '{"claim_task_type": ["\\u0000"]}',
            '{"claim_task_type": ["\\ud800"]}',
        ],
        ids=lambda value: value[:32],
    )
    def test_permissions_that_rules_cannot_read_are_no_form(self, hr, company, role, value):
        """Spec: tasks 40."""
        page = change_page(role)
        seen = preview(hr, page, "role_form", permissions=value, reason=REASON)
        assert seen.status_code == 200
        assert "Write a JSON object with claim_task_type" in seen.content.decode()
        assert not PendingChange.objects.exists()

    def test_permissions_on_tasks_lifted_are_a_right(self, hr, board, company, role):
        """Spec: tasks 40: a role without any has no limit."""
        page, limits = change_page(role), {"claim_task_type": ["bug_fix"]}
        row = proposed(hr, page, "role_form", permissions=json.dumps(limits))
        decide(board, row, "confirm")
        row = proposed(hr, page, "role_form", permissions="{}")
        lifted = "qa_worker does with tasks what its permissions name (lifted)"
        assert row.allowed == [lifted]
        role.refresh_from_db()
        assert role.permissions == limits

    def test_aliases_that_name_a_role_are_refused(self, hr, company):
        """Spec: organisation 17."""
        page = f"{list_page(Alias)}add/?organisation={company.organisation.id}"
        fields = {"alias": "hr_worker", "agent": str(company.agent("qa_worker").id)}
        seen = preview(hr, page, "alias_form", reason=REASON, **fields)
        assert seen.status_code == 422
        assert not Alias.objects.filter(alias="hr_worker").exists()

    def test_an_alias_that_leads_to_another_agent(self, hr, company):
        """HR alone would give the mail to a name another reader, in one step or in two."""
        row = Alias.objects.create(
            organisation=company.organisation, alias="chief", agent=company.agent("it_manager")
        )
        other = {"alias": "chief", "agent": str(company.agent("hr_manager").id)}
        waiting = proposed(hr, change_page(row), "alias_form", **other)
        assert waiting.allowed == ["chief leads to hr_manager"]
        assert Alias.objects.get(alias="chief").agent.handle == "it_manager"
        removal = page_of(row, "delete")
        confirm(hr, removal, preview(hr, removal, "removal-form", reason=REASON))
        assert not Alias.objects.filter(alias="chief").exists(), "to take a name away is no right"
        page = f"{list_page(Alias)}add/?organisation={company.organisation.id}"
        assert proposed(hr, page, "alias_form", **other).allowed == ["chief leads to hr_manager"]
        assert not Alias.objects.filter(alias="chief").exists()


class TestSettingsOfTheBoard:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("board_webhook", "https://example.org/x"),
            ("board_email", "x@example.org"),
            ("escalation_timeout", "999999"),
            ("ceo_timeout", "999999"),
            ("enforcement", "off"),
            ("enabled_modes", "chat_safe"),
            ("allow_internal_addresses", "on"),
            ("task_visibility", "all"),
            ("approval_task_types", "testing"),
            ("max_rounds", "100"),
            ("task_lease", "1"),
            ("frame_timeout", "1"),
        ],
    )
    def test_are_not_changed_by_hr(self, hr, company, name, value):
        page = change_page(company.organisation)
        before = Organisation.objects.get(id=company.organisation.id).settings
        fields = {f"setting_{name}": value, "reason": REASON}
        seen = preview(hr, page, "organisation_form", **fields)
        assert seen.status_code == 422
        hr.post(page, {**dict(seen.wsgi_request.POST.lists()), "_confirm": "1"})
        assert Organisation.objects.get(id=company.organisation.id).settings == before
        assert newest_event().code == "NOT_YOURS"
        assert not PendingChange.objects.exists()

    def test_are_changed_by_the_board(self, board, company):
        page = change_page(company.organisation)
        fields = {"setting_enforcement": "off", "reason": REASON}
        confirm(board, page, preview(board, page, "organisation_form", **fields))
        assert current_policy(company.organisation.id).settings["enforcement"] == "off"

    def test_a_description_is_hrs_too(self, hr, company):
        page = change_page(company.organisation)
        fields = {"description": "What we do.", "reason": REASON}
        confirm(hr, page, preview(hr, page, "organisation_form", **fields))
        company.organisation.refresh_from_db()
        assert company.organisation.description == "What we do."

    def test_member_delegation_is_the_boards(self, hr, board, company):
        group = Group.objects.create(organisation=company.organisation, slug="api", name="API")
        page = change_page(group)
        fields = {"member_delegation": "on", "reason": REASON}
        assert preview(hr, page, "group_form", **fields).status_code == 422
        confirm(board, page, preview(board, page, "group_form", **fields))
        group.refresh_from_db()
        assert group.member_delegation

    def test_are_not_put_back_by_a_proposal_from_before(self, board, second, company):
        """One column holds every setting: an old proposal would write the old ones again."""
        page = change_page(company.organisation)
        row = proposed(board, page, "organisation_form", setting_task_visibility="all")
        fields = {"setting_escalation_timeout": "60", "reason": REASON}
        confirm(second, page, preview(second, page, "organisation_form", **fields))
        decide(second, row, "confirm")
        settings = current_policy(company.organisation.id).settings
        assert (settings["escalation_timeout"], settings["task_visibility"]) == (60, "contacts")
        assert state(row) == PendingState.STALE
        assert newest_event().code == "VERSION_MISMATCH"


class TestReplacingALeader:
    @pytest.fixture
    def queue(self, db):
        from tests.company import load_company

        return load_company("soloqueue")

    def test_is_one_change(self, board, queue):
        group = Group.objects.get(organisation=queue.organisation, slug="investment")
        page = change_page(group)
        analyst = queue.agent("investment_analyst")
        before = queue.policy_version
        seen = preview(board, page, "group_form", leader_choice=str(analyst.id), reason=REASON)
        assert seen.status_code == 200
        assert "investment_analyst leads investment" in seen.content.decode()
        assert confirm(board, page, seen).status_code == 302
        policy = queue.policy
        assert policy.version == before + 1
        assert policy.agents["investment_analyst"].is_leader
        assert policy.resolve("investment.leader").handle == "investment_analyst"
        assert policy.resolve("investment.analyst").handle == "investment_leader"
        assert policy.agents["investment_analyst"].superior == "board"
        old = policy.agents["investment_leader"]
        assert (old.is_leader, old.superior, old.role) == (
            False,
            "investment_analyst",
            "group_member",
        )
        assert policy.agents["investment_trader"].superior == "investment_analyst"

    def test_by_hr_waits_for_the_board(self, hr, board, queue):
        group = Group.objects.get(organisation=queue.organisation, slug="coding")
        fields = {"leader_choice": str(queue.agent("coding_developer").id)}
        row = proposed(hr, change_page(group), "group_form", **fields)
        assert queue.policy.agents["coding_leader"].is_leader
        assert decide(board, row, "confirm").status_code == 302
        assert queue.policy.agents["coding_developer"].is_leader

    def test_offers_members_of_the_group_only(self, board, queue):
        group = Group.objects.get(organisation=queue.organisation, slug="coding")
        stranger = str(queue.agent("investment_trader").id)
        seen = preview(
            board, change_page(group), "group_form", leader_choice=stranger, reason=REASON
        )
        assert 'id="confirm-form"' not in seen.content.decode()
