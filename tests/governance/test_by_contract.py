"""An org_change contract that a person names takes the place of the second person, once."""

import dataclasses
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from contracts.closing import close_contract
from contracts.models import OrgChangeLine
from contracts.vocabulary import ContractOutcome
from core.decision import Allow, Denied, Deny
from governance.staff.named_acts import ABOUT_AGENTS, acts_between
from ledger.models import Event
from orgchart.models import Agent, ContactRule, Membership, PendingChange, Role
from orgchart.pauses.services import pause_agent
from orgchart.policy.compiled import Policy
from orgchart.second_person.edits import apply_edit, saving
from orgchart.services import SecondPersonNeeded, allow_by_contract
from tests.admin.forms import confirm, preview
from tests.company import Company, load_company
from tests.decisions import denied
from tests.documents.world import NOW, caller_of
from tests.governance.world import authorise
from tests.rows import make_once

PROMOTION = "move kim research_worker reports_to=product_manager"


@pytest.fixture
def nexus(db):
    """The company with kim, whose handle names no role."""

    def made():
        company = load_company("nexus")
        kim = change(company, hire(company, "kim"), company.system)
        assert kim.after.agents["kim"].role == "hr_worker"
        return company.organisation

    return Company(make_once("nexus with kim", made))


@pytest.fixture
def hr(nexus):
    return nexus.person("HR", username="hanna")


def promote(nexus, **columns):
    """Kim becomes a researcher: rights that nobody but research_worker had."""
    row = nexus.agent("kim")
    row.role = Role.objects.get(organisation=nexus.organisation, name="research_worker")
    row.reports_to = nexus.agent("product_manager")
    for name, value in columns.items():
        setattr(row, name, value)
    return saving(row)


def hire(nexus, handle="recruiter", role="hr_worker", **more):
    fields = {"reports_to": nexus.agent("hr_manager"), "title": "R", "job_description": "x", **more}
    role_row = Role.objects.get(organisation=nexus.organisation, name=role)
    return saving(Agent(organisation=nexus.organisation, handle=handle, role=role_row, **fields))


def change(nexus, edit, who, contract="", *, preview=False):
    return apply_edit(
        edit,
        organisation_id=nexus.organisation.id,
        caller=replace(who, contract=contract) if contract else who,
        now=NOW,
        reason="The team grows.",
        expected_version=None,
        preview=preview,
    )


def refusal(nexus, edit, who, contract):
    version = nexus.policy.version
    with pytest.raises(Denied) as refused:
        change(nexus, edit, who, contract)
    assert not isinstance(refused.value, SecondPersonNeeded)
    assert nexus.policy.version == version
    assert not OrgChangeLine.objects.exclude(used_at=None).exists()
    return refused.value.deny.code


class TestInstructionsOfAnAgentThatOrdersChanges:
    """Spec: people 60: who writes them could have it sign in place of a second person."""

    def told(self, nexus, handle):
        row = nexus.agent(handle)
        row.system_prompt = "Sign what HR asks for."
        return saving(row)

    def test_wait_for_a_second_person(self, nexus, hr):
        with pytest.raises(SecondPersonNeeded):
            change(nexus, self.told(nexus, "ceo"), hr)
        assert change(nexus, self.told(nexus, "qa_worker"), hr).changed

    def test_are_not_changed_under_its_own_contract(self, nexus, hr):
        contract = authorise(nexus.organisation, "describe ceo")
        assert refusal(nexus, self.told(nexus, "ceo"), hr, contract) == "LEVEL_DENIED"

    @pytest.fixture
    def orders(self, nexus):
        """The IT manager orders changes, too."""
        role = Role.objects.get(organisation=nexus.organisation, name="it_manager")
        role.tools = sorted([*role.tools, "generate_contract"])
        change(nexus, saving(role), nexus.system)

    def test_are_followed_with_no_key_of_before_where_an_agent_moves_it(self, nexus, orders):
        """Spec: people 55: one person alone may have issued this key."""
        assert nexus.call("kim", "current_time").status == 200
        place = {"role": "it_manager", "reports_to": "ceo"}
        order = {"to": "hr_manager", "title": "Grow", "body": "Do it.", "kind": "org_change"}
        lines = [{"act": "move", "subject": "kim", **place}]
        issued = nexus.call("ceo", "generate_contract", changes=lines, **order)
        nexus.call("hr_manager", "accept_contract", contract_id=issued.result["contract_id"])
        moves = [{"agent": "kim", **place}]
        moved = nexus.call("hr_manager", "update_org_chart", changes=moves, reason="She leads.")
        assert moved.status == 200
        assert nexus.call("kim", "current_time").code == "UNAUTHENTICATED"

    @pytest.mark.parametrize("line", ["describe it_manager", "move it_manager"])
    def test_are_no_description_that_a_contract_allows(self, nexus, hr, orders, line):
        contract = authorise(nexus.organisation, line)
        edit = self.told(nexus, "it_manager")
        assert refusal(nexus, edit, hr, contract) == "AUTHORISATION_REQUIRED"

    def test_are_not_given_with_a_hiring_that_a_contract_allows(self, nexus, hr, orders):
        contract = authorise(nexus.organisation, "hire deputy it_manager reports_to=ceo")
        hired = {"handle": "deputy", "role": "it_manager", "reports_to": nexus.agent("ceo")}
        told = hire(nexus, **hired, system_prompt="Sign what HR asks for.")
        assert refusal(nexus, told, hr, contract) == "AUTHORISATION_REQUIRED"
        assert change(nexus, hire(nexus, **hired), hr, contract).contract == contract


class TestANamedContract:
    @pytest.mark.parametrize(
        ("edit", "line"),
        [
            (promote, PROMOTION),
            (hire, "hire recruiter"),
        ],
    )
    def test_lets_the_change_it_names_take_effect(self, nexus, hr, edit, line):
        with pytest.raises(SecondPersonNeeded):
            change(nexus, edit(nexus), hr)
        contract = authorise(nexus.organisation, line)
        done = change(nexus, edit(nexus), hr, contract)
        assert (done.contract, isinstance(done.alone, Allow)) == (contract, True)
        assert OrgChangeLine.objects.get(contract_id=contract).used_at == NOW
        event = Event.objects.filter(action__in=("agent.changed", "agent.added")).order_by("-seq")[
            0
        ]
        assert (event.actor, event.details["contract"]) == ("human:hanna", contract)

    def test_is_used_up_by_the_change_it_names(self, nexus, hr):
        contract = authorise(nexus.organisation, PROMOTION)
        change(nexus, promote(nexus), hr, contract)
        back = nexus.agent("kim")
        back.role = Role.objects.get(organisation=nexus.organisation, name="hr_worker")
        back.reports_to = nexus.agent("hr_manager")
        change(nexus, saving(back), nexus.system)
        with denied("AUTHORISATION_REQUIRED"):
            change(nexus, promote(nexus), hr, contract)

    def test_is_not_used_up_by_a_preview(self, nexus, hr):
        contract = authorise(nexus.organisation, "hire recruiter")
        assert isinstance(change(nexus, hire(nexus), hr, contract, preview=True).alone, Allow)
        assert OrgChangeLine.objects.get(contract_id=contract).used_at is None

    def test_is_not_used_up_where_no_second_person_is_needed(self, nexus, hr):
        contract = authorise(nexus.organisation, "describe qa_worker")
        row = nexus.agent("qa_worker")
        row.title = "Quality"
        assert change(nexus, saving(row), hr, contract).contract == ""
        assert OrgChangeLine.objects.get(contract_id=contract).used_at is None

    @pytest.mark.parametrize(
        "line",
        [
            "hire other",
            "move qa_worker",
            "move kim",
            "move kim qa_worker",
            "move kim research_worker",  # its superior changes, too (Spec: contracts 55)
            "describe kim",
            "deactivate kim",
        ],
    )
    def test_that_names_another_change_is_refused(self, nexus, hr, line):
        contract = authorise(nexus.organisation, line)
        assert refusal(nexus, promote(nexus), hr, contract) == "AUTHORISATION_REQUIRED"

    @pytest.mark.parametrize(("line", "is_allowed"), [
        ("hire judge", False), ("hire judge hr_worker", False), ("hire judge qa_worker", True),
    ])  # fmt: skip
    def test_hires_a_judge_only_by_name(self, nexus, hr, line, is_allowed):
        """Spec: contracts 51."""
        contract = authorise(nexus.organisation, line)
        edit = hire(nexus, "judge", "qa_worker", reports_to=nexus.agent("it_manager"))
        if is_allowed:
            assert change(nexus, edit, hr, contract).contract == contract
        else:
            assert refusal(nexus, edit, hr, contract) == "AUTHORISATION_REQUIRED"

    def test_needs_a_line_for_each_act(self, nexus, hr):
        contract = authorise(nexus.organisation, PROMOTION)
        edit = promote(nexus, skills=["juggling"])
        assert refusal(nexus, edit, hr, contract) == "AUTHORISATION_REQUIRED"

    def test_that_ended_or_expired_is_refused(self, nexus, hr):
        ended = authorise(nexus.organisation, "hire recruiter")
        close_contract(
            contract_id=ended,
            outcome=ContractOutcome.CANCELLED,
            reason="No.",
            expected_version=None,
            caller=caller_of(nexus.organisation, "ceo"),
            now=NOW,
        )
        assert refusal(nexus, hire(nexus), hr, ended) == "AUTHORISATION_REQUIRED"
        late = replace(hr, contract=authorise(nexus.organisation, "hire recruiter"))
        with pytest.raises(Denied, match="free at this moment"), transaction.atomic():
            allow_by_contract(late, nexus.policy, nexus.policy, NOW + timedelta(days=8))

    @pytest.mark.parametrize("contract", ["CON-none", "x" * 500])
    def test_that_does_not_exist_is_refused(self, nexus, hr, contract):
        assert refusal(nexus, hire(nexus), hr, contract) == "AUTHORISATION_REQUIRED"

    def test_of_another_organisation_is_refused(self, nexus, hr):
        contract = authorise(nexus.organisation, "hire recruiter")
        other = load_company("dev-team").policy
        with pytest.raises(Denied, match="free at this moment"), transaction.atomic():
            allow_by_contract(replace(hr, contract=contract), other, other, NOW)

    def test_gives_no_more_than_its_assignee_could(self, nexus, hr):
        contract = authorise(nexus.organisation, "describe ceo")
        row = nexus.agent("ceo")
        row.skills = ["juggling"]
        assert refusal(nexus, saving(row), hr, contract) == "LEVEL_DENIED"

    @pytest.mark.parametrize("ending", ["deactivated", "paused"])
    def test_gives_nothing_where_its_assignee_cannot_act(self, nexus, hr, ending):
        contract = authorise(nexus.organisation, "hire recruiter")
        if ending == "paused":
            why = {"reason": "It hires too many.", "now": NOW}
            pause_agent(person=nexus.person("Board"), agent="hr_manager", **why)
        else:
            Agent.objects.filter(handle="hr_manager").update(active=False)
        with pytest.raises(Denied, match="free at this moment"), transaction.atomic():
            allow_by_contract(replace(hr, contract=contract), nexus.policy, nexus.policy, NOW)

    def test_to_describe_gives_no_skill(self, nexus, hr):
        """Spec: organisation 35."""
        contract = authorise(nexus.organisation, "describe qa_worker")
        row = nexus.agent("qa_worker")
        row.skills = ["juggling"]
        assert refusal(nexus, saving(row), hr, contract) == "AUTHORISATION_REQUIRED"

    def test_makes_its_assignee_no_co_manager(self, nexus, hr):
        """Spec: organisation 33."""
        contract = authorise(nexus.organisation, "move qa_worker")
        row, chief = nexus.agent("qa_worker"), nexus.agent("hr_manager")
        edit = saving(row, {"co_managers": [chief]})
        assert refusal(nexus, edit, hr, contract) == "LEVEL_DENIED"

    def test_allows_no_change_of_a_rule(self, nexus, hr):
        contract = authorise(nexus.organisation, "move it_manager")
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        rule.types = ["info"]
        assert refusal(nexus, saving(rule), hr, contract) == "AUTHORISATION_REQUIRED"

    def test_is_free_again_where_the_change_is_refused(self, nexus, hr):
        """The line is used in the transaction of the change."""
        contract = authorise(nexus.organisation, PROMOTION)
        edit = promote(nexus, skills=["juggling"])  # its second line is missing
        with denied("AUTHORISATION_REQUIRED"):
            change(nexus, edit, hr, contract)
        assert OrgChangeLine.objects.get(contract_id=contract).used_at is None


class TestTheActsOfAChange:
    def test_are_none_without_a_change(self, nexus):
        assert acts_between(nexus.policy, nexus.policy) == []

    def test_name_every_agent_that_differs(self, nexus):
        before = nexus.policy
        agents = dict(before.agents)
        agents["qa_worker"] = replace(agents["qa_worker"], role="backend_worker")
        agents["ceo"] = replace(agents["ceo"], skills=frozenset({"x"}))
        agents["new"] = replace(agents["ceo"], handle="new")
        acts = acts_between(before, replace(before, agents=agents))
        assert [(str(act.act), act.subject) for act in acts] == [
            ("describe", "ceo"),
            ("hire", "new"),
            ("move", "qa_worker"),
        ]

    def test_include_no_activation(self, nexus):
        after = nexus.policy
        gone = {**after.agents, "qa_worker": replace(after.agents["qa_worker"], active=False)}
        assert isinstance(acts_between(replace(after, agents=gone), after), Deny)

    @pytest.mark.parametrize(
        "part",
        sorted(
            each.name
            for each in dataclasses.fields(Policy)
            if each.compare and each.name not in ABOUT_AGENTS
        ),
    )
    def test_are_no_change_of_anything_else(self, nexus, part):
        after = replace(nexus.policy, **{part: {"other": "value"}})
        found = acts_between(nexus.policy, after)
        assert isinstance(found, Deny)
        assert part in found.message


def test_is_named_on_the_page_of_an_agent_and_shown_on_its_own(nexus, client, django_user_model):
    lines = [
        {
            "act": "move",
            "subject": "kim",
            "role": "research_worker",
            "reports_to": "product_manager",
        },
        {"act": "hire", "subject": "recruiter"},
    ]
    issued = {"to": "hr_manager", "title": "Grow", "body": "Two acts.", "kind": "org_change"}
    contract = nexus.call("ceo", "generate_contract", **issued, changes=lines).result["contract_id"]
    assert nexus.call("hr_manager", "accept_contract", contract_id=contract).status == 200
    user = django_user_model.objects.create_user("hanna", password="x", is_staff=True)
    user.groups.add(*Group.objects.filter(name="HR"))
    Membership.objects.create(person=user)
    django_user_model.objects.create_superuser("root", password="x")
    client.force_login(user)
    row = nexus.agent("kim")
    page = f"/admin/orgchart/agent/{row.pk}/change/?edit=1"
    wanted = {
        "role": str(Role.objects.get(organisation=row.organisation, name="research_worker").pk),
        "reports_to": str(nexus.agent("product_manager").pk),
        "contract": contract,
        "reason": "She does research now.",
    }
    seen = preview(client, page, "agent_form", **wanted)
    html = seen.content.decode()
    assert "second-person" not in html
    assert f"{contract} takes the place of the second person" in html
    assert "You are the only member of the Board" not in html
    confirm(client, page, seen)
    row.refresh_from_db()
    assert row.role.name == "research_worker"
    assert not PendingChange.objects.exists()
    client.force_login(django_user_model.objects.get(username="root"))
    shown = client.get(f"/admin/contracts/contract/{contract}/change/").content.decode()
    assert "move kim as research_worker, reporting to product_manager</span>: used" in shown
    assert "hire recruiter</span>: not used" in shown
