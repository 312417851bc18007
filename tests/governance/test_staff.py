"""HR's tools through the door: only under the CEO's contract, only downward, never half."""

import gc
import shutil
import threading
import weakref

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.models import F

from contracts.issuing.changes import NamedChange
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.models import Contract, OrgChangeLine
from contracts.services import accept_contract
from contracts.vocabulary import ContractKind, OrgAct
from core.actors import Person, System
from core.decision import Code, Denied
from governance.staff import open_work
from governance.staff.deactivation import deactivate_by_person
from governance.staff.open_work import seen_by
from governance.staff.org_files import org_files, refresh_org_files
from ledger.models import Event
from mailroom.delivery import MailDraft
from mailroom.models import Mail
from mailroom.services import send_mail
from orgchart.compiling import compile_policy
from orgchart.models import Agent, ContactRule, Group, Organisation, Role
from orgchart.packs import diff_pack, load_pack
from orgchart.policy.vocabulary import LOWEST_LEVEL
from tasks.models import Task
from tests.company import load_company
from tests.decisions import denied
from tests.documents.world import NOW, caller_of, found
from tests.governance.world import authorise
from tests.oracle import contracts as oracle
from toolbox import door
from toolbox.explaining import explain

MOST_PARAMETERS = 65_535
"""Of one statement, in PostgreSQL."""

JD = {"title": "Clerk", "job_description": "Keeps the files."}
NEW = {"handle": "backend_two", "role": "backend_worker", **JD}

REST = "reports_to: ceo"
LEFT = (
    "dev: backend_worker",
    "it_admin: it_manager",
    "it.manager: it_manager",
    "eng_manager: it_manager",
)

CHANGES = [
    ("create_agent_jd", NEW),
    ("update_agent_jd", {"agent": "backend_worker", "title": "Senior"}),
    ("deactivate_agent", {"agent": "backend_worker", "reason": "over"}),
    ("update_org_chart", {
        "changes": [{"agent": "qa_worker", "co_managers": ["product_manager"]}], "reason": "closer",
    }),
]  # fmt: skip


def call(nexus, tool, by="hr_manager", **params):
    return door.call(caller_of(nexus, by), tool, params, now=NOW).body


def done(nexus, tool, **params):
    body = call(nexus, tool, **params)
    assert body["ok"], body
    return body["result"]


def refused(nexus, tool, **params):
    before = compile_policy(nexus.id)
    body = call(nexus, tool, **params)
    assert not body["ok"], body
    assert compile_policy(nexus.id) == before
    assert Event.objects.filter(action="tool.denied", code=body["error_code"]).exists()
    return body["error_code"]


class TestAnOrganisationOfManyAgents:
    """One organisation does not use up the numbers of the installation (Spec: settings 9)."""

    @pytest.fixture
    def full(self, nexus, contract, settings):
        settings.NEXUS_ORGANISATION_AGENTS = nexus.agents.count()
        return nexus

    def test_hires_until_its_limit(self, full, settings):
        body = call(full, "create_agent_jd", **NEW)
        assert body["error_code"] == "QUOTA_EXCEEDED"
        assert (body["details"]["used"], body["details"]["limit"]) == (full.agents.count(),) * 2
        assert refused(full, "create_agent_jd", **NEW) == "QUOTA_EXCEEDED"
        settings.NEXUS_ORGANISATION_AGENTS += 1
        assert done(full, "create_agent_jd", **NEW)

    def test_counts_those_that_left(self, full):
        done(full, "deactivate_agent", agent="backend_worker", reason="over")
        assert refused(full, "create_agent_jd", **NEW) == "QUOTA_EXCEEDED"

    def test_goes_on_where_more_are_there(self, full, settings):
        settings.NEXUS_ORGANISATION_AGENTS = 1
        done(full, "update_agent_jd", agent="backend_worker", title="Senior")
        done(full, "deactivate_agent", agent="backend_worker", reason="over")

    def test_has_the_limit_that_the_board_sets(self, nexus, contract):
        call_command("org", "set", "nexus", f"organisation_agents={nexus.agents.count()}")
        assert refused(nexus, "create_agent_jd", **NEW) == "QUOTA_EXCEEDED"

    def test_that_is_founded_has_it_too(self, db, settings):
        settings.NEXUS_ORGANISATION_AGENTS = 3
        with pytest.raises(Denied) as problem:
            load_company("nexus", now=NOW)
        assert problem.value.deny.code is Code.QUOTA_EXCEEDED


class TestAuthorisation:
    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    def test_is_needed_for_every_change(self, nexus, tool, params):
        assert refused(nexus, tool, **params) == "AUTHORISATION_REQUIRED"
        body = call(nexus, tool, **params)
        assert "ceo" in body["next_action"]

    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    def test_is_named_by_the_event_of_the_change(self, nexus, contract, tool, params):
        answer = done(nexus, tool, **params)
        event = Event.objects.exclude(details__contract=None).latest("seq")
        assert event.details["contract"] == contract
        assert event.details["policy_version"] == answer["policy_version"]
        assert event.actor == "agent:hr_manager"

    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    def test_of_another_kind_is_none(self, nexus, tool, params):
        issued = issue_contract(
            caller=caller_of(nexus, "ceo"),
            draft=ContractDraft(to="hr_manager", title="t", body="b"),
            tool="generate_contract", now=NOW,
        )  # fmt: skip
        accept_contract(
            contract_id=issued["contract_id"], expected_version=None,
            caller=caller_of(nexus, "hr_manager"), now=NOW,
        )  # fmt: skip
        assert refused(nexus, tool, **params) == "AUTHORISATION_REQUIRED"

    def test_to_hire_a_recruiter_makes_no_worker_a_judge(self, nexus):
        authorise(nexus, "hire recruiter")
        moves = [{"agent": "backend_worker", "role": "qa_worker"}]
        assert refused(nexus, "update_org_chart", changes=moves, reason="Recruiting.") == (
            "AUTHORISATION_REQUIRED"
        )

    @pytest.mark.parametrize(
        ("line", "role", "code"),
        [
            ("hire recruiter", "hr_worker", "OK"),
            ("hire recruiter", "qa_worker", "AUTHORISATION_REQUIRED"),
            ("hire recruiter", "it_manager", "AUTHORISATION_REQUIRED"),
            ("hire recruiter hr_worker", "hr_worker", "OK"),
            ("hire recruiter hr_worker", "backend_worker", "AUTHORISATION_REQUIRED"),
            ("hire recruiter qa_worker", "qa_worker", "OK"),
            ("hire recruiter it_manager", "it_manager", "OK"),
            ("hire recruiter recruiter", "recruiter", "OK"),
        ],
    )
    def test_gives_the_role_that_its_line_names(self, nexus, line, role, code):
        """Spec: contracts 51."""
        authorise(nexus, line)
        above = {"qa_worker": "it_manager", "backend_worker": "it_manager", "it_manager": "ceo"}
        hire = {**NEW, "handle": "recruiter", "role": role,
                "reports_to": above.get(role, "hr_manager")}  # fmt: skip
        assert call(nexus, "create_agent_jd", **hire).get("error_code", "OK") == code

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("move kim", "AUTHORISATION_REQUIRED"),
            ("move kim devops_worker", "AUTHORISATION_REQUIRED"),
            ("move kim qa_worker", "OK"),
        ],
    )
    def test_to_move_changes_a_role_only_where_it_names_it(self, nexus, line, code):
        """Spec: contracts 51."""
        authorise(nexus, "hire kim")
        done(nexus, "create_agent_jd", **{**NEW, "handle": "kim"})
        authorise(nexus, line)
        moves = [{"agent": "kim", "role": "qa_worker"}]
        answer = call(nexus, "update_org_chart", changes=moves, reason="r")
        assert answer.get("error_code", "OK") == code

    @pytest.mark.parametrize(
        ("line", "more", "code"),
        [
            ("hire kim", {}, "OK"),
            ("hire kim", {"co_managers": ["product_manager"]}, "AUTHORISATION_REQUIRED"),
            ("hire kim co_managers=ceo", {"co_managers": ["product_manager"]},
             "AUTHORISATION_REQUIRED"),
            ("hire kim co_managers=pm", {"co_managers": ["product_manager"]}, "OK"),
            ("hire kim co_managers=product_manager", {}, "OK"),
            ("hire kim", {"skills": ["plan"]}, "AUTHORISATION_REQUIRED"),
            ("hire kim skills=plan", {"skills": ["plan"]}, "OK"),
            ("hire kim skills=plan", {"skills": ["plan", "more"]}, "AUTHORISATION_REQUIRED"),
            ("hire kim kim", {"role": "kim", "reports_to": "product_manager"}, "OK"),
            ("hire kim kim reports_to=it_manager", {"role": "kim", "reports_to": "product_manager"},
             "AUTHORISATION_REQUIRED"),
            ("hire kim kim reports_to=pm", {"role": "kim", "reports_to": "product_manager"}, "OK"),
        ],
    )  # fmt: skip
    def test_to_hire_gives_the_place_and_skills_that_its_line_names(self, nexus, line, more, code):
        """Spec: contracts 55."""
        nexus.aliases.create(alias="pm", agent=Agent.objects.get(handle="product_manager"))
        authorise(nexus, line)
        hire = {**NEW, "handle": "kim", **more}
        assert call(nexus, "create_agent_jd", **hire).get("error_code", "OK") == code

    @pytest.mark.parametrize(
        ("line", "move", "code"),
        [
            ("move kim", {"reports_to": "it_manager"}, "AUTHORISATION_REQUIRED"),
            ("move kim reports_to=hr_manager", {"reports_to": "it_manager"},
             "AUTHORISATION_REQUIRED"),
            ("move kim reports_to=it_manager", {"reports_to": "it_manager"}, "OK"),
            ("move kim reports_to=it_manager", {"co_managers": []}, "AUTHORISATION_REQUIRED"),
            ("move kim", {"co_managers": []}, "OK"),
            ("move kim", {"co_managers": ["ceo"]}, "OK"),
            ("move kim", {"co_managers": ["ceo", "it_manager"]}, "AUTHORISATION_REQUIRED"),
            ("move kim co_managers=it_manager", {"co_managers": ["ceo", "it_manager"]}, "OK"),
            ("move kim reports_to=it_manager",
             {"reports_to": "it_manager", "co_managers": ["product_manager"]},
             "AUTHORISATION_REQUIRED"),
        ],
    )  # fmt: skip
    def test_to_move_gives_the_place_that_its_line_names(self, nexus, line, move, code):
        """Spec: contracts 55. Kim is of a new kind and has the CEO as co-manager."""
        authorise(nexus, "hire kim kim reports_to=product_manager co_managers=ceo")
        hire = {**NEW, "handle": "kim", "role": "kim", "reports_to": "product_manager"}
        done(nexus, "create_agent_jd", **hire, co_managers=["ceo"])
        kim, role = Role.objects.get(name="kim"), Role.objects.get(name="it_manager")
        for sender, recipient in ((kim, role), (role, kim)):
            ContactRule.objects.create(
                organisation_id=nexus.id, sender=sender, recipient=recipient, relation="own"
            )
        Organisation.objects.filter(id=nexus.id).update(policy_version=F("policy_version") + 1)
        authorise(nexus, line)
        moves = [{"agent": "kim", **move}]
        answer = call(nexus, "update_org_chart", changes=moves, reason="r")
        assert answer.get("error_code", "OK") == code

    def test_makes_no_role_below_the_lowest_level(self, nexus):
        """Spec: organisation 5. Its manager must be of a higher one."""
        workers = Role.objects.filter(organisation_id=nexus.id, kind="worker")
        workers.update(level=LOWEST_LEVEL)
        managers = Role.objects.filter(organisation_id=nexus.id, name="product_manager")
        for level, code in ((LOWEST_LEVEL, "INVALID_PARAMS"), (LOWEST_LEVEL - 1, "OK")):
            managers.update(level=level)
            Organisation.objects.filter(id=nexus.id).update(policy_version=F("policy_version") + 1)
            authorise(nexus, "hire kim kim")
            hire = {**NEW, "handle": "kim", "role": "kim", "reports_to": "product_manager"}
            answer = call(nexus, "create_agent_jd", **hire)
            assert answer.get("error_code", "OK") == code, answer
        assert Role.objects.get(organisation_id=nexus.id, name="kim").level == LOWEST_LEVEL

    def test_places_agents_below_the_manager_that_it_hires(self, nexus):
        """Spec: contracts 48: one contract replaces a manager."""
        authorise(
            nexus, "hire it_two it_manager reports_to=ceo", "move qa_worker reports_to=it_two"
        )
        below = [{"agent": "qa_worker", "reports_to": "it_two"}]
        assert refused(nexus, "update_org_chart", changes=below, reason="r") == "NOT_FOUND"
        hire = {**NEW, "handle": "it_two", "role": "it_manager", "reports_to": "ceo"}
        done(nexus, "create_agent_jd", **hire)
        done(nexus, "update_org_chart", changes=below, reason="r")
        with denied("INVALID_PARAMS"):
            authorise(nexus, "hire clerk hr_worker", "move qa_worker reports_to=nobody")

    def test_to_repair_deactivates_no_manager(self, nexus):
        authorise(nexus, "describe it_manager")
        assert refused(nexus, "deactivate_agent", agent="it_manager", reason="Repair.") == (
            "AUTHORISATION_REQUIRED"
        )

    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    @pytest.mark.parametrize("act", OrgAct)
    @pytest.mark.parametrize("subject", ["backend_worker", "qa_worker", "backend_two"])
    def test_covers_the_act_and_the_agent_that_a_line_names(
        self, nexus, tool, params, act, subject
    ):
        if (act is OrgAct.HIRE) != (subject == "backend_two"):
            return
        more = " co_managers=product_manager" if act is OrgAct.MOVE else ""
        authorise(nexus, f"{act} {subject}{more}")
        target = {
            "create_agent_jd": "backend_two", "update_org_chart": "qa_worker",
        }.get(tool, "backend_worker")  # fmt: skip
        covered = (act, subject) == (oracle.ACTS[tool], target)
        body = call(nexus, tool, **params)
        assert body.get("error_code", "OK") == ("OK" if covered else "AUTHORISATION_REQUIRED")

    def test_needs_a_line_for_each_agent_that_moves(self, nexus):
        authorise(nexus, "move qa_worker co_managers=product_manager")
        moves = [
            {"agent": "qa_worker", "co_managers": ["product_manager"]},
            {"agent": "devops_worker", "co_managers": ["product_manager"]},
        ]
        assert refused(nexus, "update_org_chart", changes=moves, reason="closer") == (
            "AUTHORISATION_REQUIRED"
        )
        done(nexus, "update_org_chart", changes=moves[:1], reason="closer")  # the line is unused

    def test_is_used_up_by_the_change_and_not_by_a_refused_one(self, nexus):
        authorise(nexus, "describe backend_worker")
        stale = {"agent": "backend_worker", "title": "x", "expected_policy_version": 999}
        assert refused(nexus, "update_agent_jd", **stale) == "VERSION_MISMATCH"
        done(nexus, "update_agent_jd", agent="backend_worker", title="Senior")
        assert refused(nexus, "update_agent_jd", agent="backend_worker", title="Chief") == (
            "AUTHORISATION_REQUIRED"
        )

    def test_of_hr_covers_its_restrictions_of_tools_too(self, nexus):
        Role.objects.filter(name="hr_manager").update(
            tools=[*Role.objects.get(name="hr_manager").tools, "manage_tools"]
        )
        research, hr = (Role.objects.get(name=n) for n in ("research_worker", "hr_manager"))
        for sender, recipient in ((research, hr), (hr, research)):
            ContactRule.objects.create(
                organisation_id=nexus.id, sender=sender, recipient=recipient, relation="own"
            )
        Agent.objects.filter(handle="research_worker").update(
            reports_to=Agent.objects.get(handle="hr_manager")
        )
        Organisation.objects.filter(id=nexus.id).update(policy_version=F("policy_version") + 1)
        take = {
            "action": "tighten", "agent": "research_worker", "tool": "web_search", "modes": [],
            "reason": "Costs.",
        }  # fmt: skip

        def manage(**params):
            caller = caller_of(nexus, "hr_manager")
            return door.call(caller, "manage_tools", params, now=NOW).body.get("error_code", "OK")

        assert manage(**take) == "AUTHORISATION_REQUIRED"
        authorise(nexus, "restrict_tools research_worker")
        assert manage(**take) == "OK"
        assert manage(**{**take, "action": "restore"}) == "AUTHORISATION_REQUIRED"

    def test_that_is_not_accepted_is_none(self, nexus):
        issue_contract(
            caller=caller_of(nexus, "ceo"), tool="generate_contract", now=NOW,
            draft=ContractDraft(
                to="hr_manager", title="t", body="b", kind=ContractKind.ORG_CHANGE,
                changes=[NamedChange(OrgAct.HIRE, "backend_two")],
            ),
        )  # fmt: skip
        assert refused(nexus, "create_agent_jd", **NEW) == "AUTHORISATION_REQUIRED"

    def test_of_another_organisation_is_none(self, nexus):
        other = found("nexus", slug="other")
        authorise(other, "hire backend_two")
        assert refused(nexus, "create_agent_jd", **NEW) == "AUTHORISATION_REQUIRED"

    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    def test_does_not_lend_the_tools_to_others(self, nexus, contract, tool, params):
        for handle in ("ceo", "it_manager", "backend_worker"):
            assert call(nexus, tool, by=handle, **params)["error_code"] == "TOOL_NOT_BOUND"

    @pytest.mark.parametrize(("tool", "params"), CHANGES)
    def test_is_explained_without_changing_anything(self, nexus, contract, tool, params):
        before = compile_policy(nexus.id)
        found_rule = explain(caller_of(nexus, "hr_manager"), tool, params, now=NOW)
        assert found_rule["allowed"], found_rule
        assert compile_policy(nexus.id) == before


class TestCreateAgent:
    def test_hires_below_whom_the_role_reports_to(self, nexus, contract):
        answer = done(nexus, "create_agent_jd", **NEW)
        policy = compile_policy(nexus.id)
        assert answer == {
            "agent": "backend_two", "address": "backend_two", "policy_version": policy.version,
        }  # fmt: skip
        assert policy.agents["backend_two"].superior == "it_manager"
        assert policy.agents["backend_two"].active
        assert Agent.objects.get(handle="backend_two").job_description == "Keeps the files."

    def test_tells_who_ordered_it_what_the_line_left_open(self, nexus):
        """Spec: contracts 51."""
        authorise(nexus, "hire recruiter")
        done(nexus, "create_agent_jd", **{**NEW, "handle": "recruiter", "title": "MARK"})
        told = Mail.objects.get(to_agent="ceo", from_agent="system")
        assert told.subject == "recruiter was hired as backend_worker"
        assert "reports to it_manager" in told.body
        assert "MARK" not in told.body

    def test_hires_the_first_of_a_role_below_the_only_possible_superior(self, nexus):
        authorise(nexus, "hire clerk")
        done(nexus, "create_agent_jd", **{**NEW, "handle": "clerk", "role": "hr_worker"})
        assert compile_policy(nexus.id).agents["clerk"].superior == "hr_manager"

    def test_hires_into_a_group_under_an_address(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        Agent.objects.filter(handle="backend_worker").update(
            group=group, name="leader", is_leader=True
        )
        hire = {**NEW, "group": "api", "name": "two"}
        assert refused(nexus, "create_agent_jd", **hire) == "AUTHORISATION_REQUIRED"
        authorise(nexus, "hire backend_two group=api")
        words = {**hire, "name": "all_is_lost"}  # Spec: contracts 58
        assert refused(nexus, "create_agent_jd", **words) == "INVALID_PARAMS"
        answer = done(nexus, "create_agent_jd", **hire)
        assert answer["address"] == "api.two"

    def test_issues_no_key(self, nexus, contract):
        done(nexus, "create_agent_jd", **NEW)
        assert not Agent.objects.get(handle="backend_two").keys.exists()

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"role": "ceo"}, "LEVEL_DENIED"),
            ({"role": "hr_manager"}, "LEVEL_DENIED"),
            ({"role": "emperor"}, "INVALID_PARAMS"),
            ({"handle": "it_manager"}, "INVALID_PARAMS"),
            ({"handle": "board"}, "INVALID_PARAMS"),
            ({"handle": "system"}, "INVALID_PARAMS"),
            ({"handle": "devops_worker"}, "INVALID_PARAMS"),
            ({"handle": "Backend"}, "INVALID_PARAMS"),
            ({"handle": "a b"}, "INVALID_PARAMS"),
            ({"reports_to": "board"}, "INVALID_PARAMS"),
            ({"reports_to": "nobody"}, "NOT_FOUND"),
            ({"reports_to": "qa_worker"}, "INVALID_PARAMS"),
            ({"co_managers": ["nobody"]}, "NOT_FOUND"),
            ({"co_managers": ["it_manager", "hr_manager"]}, "LEVEL_DENIED"),
            ({"group": "nowhere", "name": "x"}, "INVALID_PARAMS"),
            ({"group": "nowhere"}, "INVALID_PARAMS"),
            ({"name": "x"}, "INVALID_PARAMS"),
            ({"skills": ["approve_deployment"]}, "LEVEL_DENIED"),
            ({"skills": ["write_file"]}, "LEVEL_DENIED"),
            ({"skills": ["close_contract"]}, "LEVEL_DENIED"),
            ({"expected_policy_version": 999}, "VERSION_MISMATCH"),
            ({"expected_policy_version": True}, "INVALID_PARAMS"),
            ({"expected_policy_version": "1"}, "INVALID_PARAMS"),
            ({"level": 1}, "INVALID_PARAMS"),
        ],
    )
    def test_refuses_what_would_break_a_rule(self, nexus, contract, change, code):
        assert refused(nexus, "create_agent_jd", **{**NEW, **change}) == code

    def test_refuses_a_name_that_an_alias_has(self, nexus, contract):
        nexus.aliases.create(alias="pm", agent=Agent.objects.get(handle="product_manager"))
        assert refused(nexus, "create_agent_jd", **{**NEW, "handle": "pm"}) == "INVALID_PARAMS"

    def test_refuses_the_name_of_a_role_that_it_does_not_have(self, nexus, contract):
        Role.objects.create(
            organisation=nexus, name="auditor", title="Auditor", level=3, kind="worker"
        )
        assert refused(nexus, "create_agent_jd", **{**NEW, "handle": "auditor"}) == "INVALID_PARAMS"

    def test_refuses_a_deactivated_superior(self, nexus, contract):
        done(nexus, "deactivate_agent", agent="product_manager", reason="over")
        assert refused(nexus, "create_agent_jd", **NEW, reports_to="product_manager") == (
            "INVALID_PARAMS"
        )


class TestUpdateAgent:
    def test_changes_what_is_given(self, nexus, contract):
        done(nexus, "update_agent_jd", agent="qa_worker", title="Tester", job_description="Tests.")
        row = Agent.objects.get(handle="qa_worker")
        assert (row.title, row.job_description) == ("Tester", "Tests.")

    @pytest.mark.parametrize(
        ("params", "code"),
        [
            ({"agent": "hr_manager", "title": "Chief"}, "LEVEL_DENIED"),
            ({"agent": "ceo", "title": "Clerk"}, "LEVEL_DENIED"),
            ({"agent": "nobody", "title": "x"}, "NOT_FOUND"),
            ({"agent": "qa_worker"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "title": " "}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "skills": ["git_push"]}, "LEVEL_DENIED"),
            (
                {"agent": "qa_worker", "title": "x", "expected_policy_version": 7},
                "VERSION_MISMATCH",
            ),
        ],
    )
    def test_refuses_what_would_break_a_rule(self, nexus, contract, params, code):
        assert refused(nexus, "update_agent_jd", **params) == code

    def test_takes_skills_away_and_gives_none(self, nexus, contract):
        """Spec: organisation 35: a skill is a right."""
        given = ["summarise", "web_search"]
        Agent.objects.filter(handle="research_worker").update(skills=given)
        more = [*given, "juggle"]
        assert refused(nexus, "update_agent_jd", agent="research_worker", skills=more) == (
            "AUTHORISATION_REQUIRED"
        )
        assert Agent.objects.get(handle="research_worker").skills == given
        done(nexus, "update_agent_jd", agent="research_worker", skills=["web_search"])
        assert Agent.objects.get(handle="research_worker").skills == ["web_search"]


class TestDeactivate:
    def test_lists_what_is_held_and_hands_it_to_the_superior(self, nexus, contract):
        it = caller_of(nexus, "it_manager")
        theirs = issue_contract(
            caller=it, draft=ContractDraft(to="backend_worker", title="API", body="b"),
            tool="create_contract", now=NOW,
        )  # fmt: skip
        send_mail(
            caller=it, now=NOW,
            draft=MailDraft(to="backend_worker", mail_type="info", subject="s", body="b"),
        )  # fmt: skip
        answer = done(nexus, "deactivate_agent", agent="backend_worker", reason="done here")
        assert answer["handed_to"] == "it_manager"
        held = {
            "contracts_assigned": [theirs["contract_id"]], "contracts_issued": [], "tasks": [],
            "unread_mails": 2, "reports": [],
        }  # fmt: skip
        assert Event.objects.get(action="agent.deactivated").details["holds"] == held
        assert answer["holds"] == {**held, "contracts_assigned": []}
        told = Mail.objects.filter(to_agent="it_manager", from_agent="system")
        notice = told.get(subject="backend_worker was deactivated")
        assert theirs["contract_id"] in notice.body
        assert "done here" in notice.body
        assert not compile_policy(nexus.id).agents["backend_worker"].active

    def test_answers_of_more_open_work_than_a_statement_has_parameters(self, nexus):
        many = [str(number) for number in range(MOST_PARAMETERS + 1)]
        held = {
            "contracts_assigned": many, "contracts_issued": many, "tasks": many,
            "unread_mails": 0, "reports": [],
        }  # fmt: skip
        seen = seen_by(caller_of(nexus, "hr_manager"), held)
        assert (seen["contracts_assigned"], seen["contracts_issued"]) == ([], [])

    def test_tells_no_reason_to_a_superior_that_its_writer_may_not_write_to(self, nexus, contract):
        """Spec: mail 43."""
        rules = ContactRule.objects.filter(organisation=nexus, sender__name="hr_manager")
        rules.filter(recipient__name="it_manager").delete()
        Organisation.objects.filter(id=nexus.id).update(policy_version=F("policy_version") + 1)
        done(nexus, "deactivate_agent", agent="backend_worker", reason="MARK")
        notice = Mail.objects.get(subject="backend_worker was deactivated")
        assert "MARK" not in notice.body
        assert notice.body.startswith(
            "backend_worker was deactivated by hr_manager, which may not write"
        )
        assert Event.objects.get(action="agent.deactivated").reason == "MARK"

    def test_hands_issued_contracts_over(self, nexus, contract):
        issued = issue_contract(
            caller=caller_of(nexus, "it_manager"),
            draft=ContractDraft(to="backend_worker", title="API", body="b"),
            tool="create_contract", now=NOW,
        )  # fmt: skip
        answer = done(nexus, "deactivate_agent", agent="it_manager", reason="reorganised")
        held = Event.objects.get(action="agent.deactivated").details["holds"]
        assert held["contracts_issued"] == [issued["contract_id"]]
        assert answer["holds"]["contracts_issued"] == []
        workers = ["backend_worker", "devops_worker", "frontend_worker", "qa_worker"]
        assert answer["holds"]["reports"] == workers
        assert Contract.objects.get(id=issued["contract_id"]).issuer.handle == "ceo"

    def test_answers_hr_what_it_may_read_alone(self, nexus, contract):
        """Ids of other agents' work are theirs (Spec: tasks 34, contracts 39)."""
        writers = {"it_manager": "not HR's", "hr_manager": "of the creator"}
        by = {
            handle: door.call(caller_of(nexus, handle), "task_create", {"subject": text}, now=NOW)
            for handle, text in writers.items()
        }
        ids = {handle: made.body["result"]["id"] for handle, made in by.items()}
        ContactRule.objects.filter(sender__name="it_manager", recipient__name="hr_manager").delete()
        rows = Task.objects.filter(organisation=nexus)
        rows.update(owner=Agent.objects.get(handle="backend_worker"), claimed_at=NOW)
        Organisation.objects.filter(id=nexus.id).update(policy_version=F("policy_version") + 1)
        answer = done(nexus, "deactivate_agent", agent="backend_worker", reason="over")
        assert answer["holds"]["tasks"] == [ids["hr_manager"]]
        held = Event.objects.get(action="agent.deactivated").details["holds"]
        assert held["tasks"] == sorted(ids.values())

    def test_names_few_of_many_tasks_in_its_event(self, nexus, contract, monkeypatch):
        """An agent can hold a million."""
        monkeypatch.setattr(open_work, "MOST_NAMED", 2)
        worker = caller_of(nexus, "backend_worker")
        made = [
            door.call(worker, "task_create", {"subject": "x"}, now=NOW).body["result"]["id"]
            for _ in range(3)
        ]
        rows = Task.objects.filter(organisation=nexus)
        rows.update(owner=Agent.objects.get(handle="backend_worker"), claimed_at=NOW)
        done(nexus, "deactivate_agent", agent="backend_worker", reason="over")
        held = Event.objects.get(action="agent.deactivated").details["holds"]
        assert held["tasks"] == made[:2]
        told = Mail.objects.get(subject="backend_worker was deactivated").body
        assert f"now free for others: {', '.join(made)}" in told

    def test_ends_what_the_agent_can_do(self, nexus, contract):
        done(nexus, "deactivate_agent", agent="backend_worker", reason="over")
        with pytest.raises(Denied) as refusal:
            send_mail(
                caller=caller_of(nexus, "it_manager"), now=NOW,
                draft=MailDraft(to="backend_worker", mail_type="info", subject="s", body="b"),
            )  # fmt: skip
        assert refusal.value.deny.code is Code.RECIPIENT_INACTIVE

    @pytest.mark.parametrize(
        ("params", "code"),
        [
            ({"agent": "hr_manager"}, "LEVEL_DENIED"),
            ({"agent": "ceo"}, "LEVEL_DENIED"),
            ({"agent": "board"}, "NOT_FOUND"),
            ({"agent": "nobody"}, "NOT_FOUND"),
            ({"agent": "qa_worker", "reason": ""}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "reason": " "}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "expected_policy_version": 99}, "VERSION_MISMATCH"),
        ],
    )
    def test_refuses_what_would_break_a_rule(self, nexus, contract, params, code):
        params = {"reason": "over", **params}
        assert refused(nexus, "deactivate_agent", **params) == code

    def test_refuses_a_second_time(self, nexus, contract):
        done(nexus, "deactivate_agent", agent="qa_worker", reason="over")
        authorise(nexus, "deactivate qa_worker")
        assert refused(nexus, "deactivate_agent", agent="qa_worker", reason="again") == (
            "INVALID_TRANSITION"
        )

    def test_refuses_to_leave_a_group_without_its_leader(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        for handle, leads in (("backend_worker", True), ("frontend_worker", False)):
            Agent.objects.filter(handle=handle).update(group=group, name=handle, is_leader=leads)
        assert refused(nexus, "deactivate_agent", agent="backend_worker", reason="over") == (
            "INVALID_PARAMS"
        )
        assert not Mail.objects.filter(subject="backend_worker was deactivated").exists()


class TestAPackThatHasAnAgentNoMore:
    @pytest.fixture
    def pack(self, tmp_path):
        folder = tmp_path / "nexus"
        shutil.copytree(settings.BASE_DIR / "packs" / "nexus", folder)
        for handle in ("backend_worker", "it_manager"):
            (folder / "agents" / f"{handle}.yaml").unlink()
        for path in folder.rglob("*.yaml"):
            text = path.read_text(encoding="utf-8").replace("reports_to: it_manager", REST)
            lines = [line for line in text.splitlines(True) if not line.rstrip().endswith(LEFT)]
            path.write_text("".join(lines), encoding="utf-8")
        protocol = folder / "mail-protocol.yaml"
        text = protocol.read_text(encoding="utf-8")
        own = "  - {{from: {}, to: ceo, relation: own}}\n"
        up = "".join(own.format(f"{w}_worker") for w in ("devops", "frontend", "qa"))
        protocol.write_text(text.replace("\nboard:", f"{up}\nboard:"), encoding="utf-8")
        return folder

    def test_hands_over_to_the_next_above_it_that_stays(self, nexus, pack):
        theirs = issue_contract(
            caller=caller_of(nexus, "it_manager"),
            draft=ContractDraft(to="backend_worker", title="API", body="b"),
            tool="create_contract", now=NOW,
        )["contract_id"]  # fmt: skip
        load_pack(pack, caller=System(name="tests", organisation_id=0), now=NOW)
        assert Contract.objects.get(id=theirs).issuer.handle == "ceo"
        told = Mail.objects.filter(to_agent="ceo", from_agent="system")
        for handle in ("backend_worker", "it_manager"):
            assert theirs in told.get(subject=f"{handle} was deactivated").body
        held = Event.objects.get(action="pack.loaded", details__has_key="holds").details["holds"]
        assert held["backend_worker"]["contracts_assigned"] == [theirs]
        assert held["it_manager"]["handed_to"] == "ceo"

    def test_hands_nothing_over_in_a_comparison(self, nexus, pack):
        diff_pack(nexus, pack, caller=System(name="tests", organisation_id=nexus.id), now=NOW)
        assert compile_policy(nexus.id).agents["backend_worker"].active
        assert not Mail.objects.filter(to_agent="ceo", from_agent="system").exists()


class TestDeactivateByPerson:
    def person(self, nexus, *offices):
        return Person(
            username="alice", organisation_id=nexus.id, groups=frozenset(offices), is_member=True
        )

    def test_needs_office_and_reason_but_no_contract(self, nexus):
        version = compile_policy(nexus.id).version
        for offices, reason, expected, code in [
            ((), "over", version, Code.NOT_YOURS),
            (("Observer",), "over", version, Code.NOT_YOURS),
            (("Board",), " ", version, Code.INVALID_PARAMS),
            (("Board",), "over", version + 1, Code.VERSION_MISMATCH),
        ]:
            with pytest.raises(Denied) as refusal:
                deactivate_by_person(
                    person=self.person(nexus, *offices), agent="qa_worker", reason=reason,
                    expected_version=expected, now=NOW,
                )  # fmt: skip
            assert refusal.value.deny.code is code
        answer = deactivate_by_person(
            person=self.person(nexus, "HR"), agent="qa_worker", reason="over",
            expected_version=version, now=NOW,
        )  # fmt: skip
        assert answer["handed_to"] == "it_manager"
        assert Event.objects.get(action="agent.deactivated").actor == "human:alice"
        assert "was deactivated: over" in Mail.objects.get(to_agent="it_manager").body

    def test_refuses_to_leave_the_organisation_without_its_top_agent(self, nexus, contract):
        with pytest.raises(Denied) as refusal:
            deactivate_by_person(
                person=self.person(nexus, "Board"), agent="ceo", reason="over",
                expected_version=compile_policy(nexus.id).version, now=NOW,
            )  # fmt: skip
        assert refusal.value.deny.rule == "one top agent"
        assert Contract.objects.get(id=contract).issuer.handle == "ceo"


class TestUpdateOrgChart:
    def move(self, **change):
        return {"changes": [change], "reason": "reorganised"}

    def test_moves_several_together(self, nexus, contract):
        answer = done(nexus, "update_org_chart", reason="closer", changes=[
            {"agent": "research_worker", "co_managers": ["it_manager"]},
            {"agent": "qa_worker", "co_managers": ["product_manager"]},
        ])  # fmt: skip
        policy = compile_policy(nexus.id)
        assert policy.agents["research_worker"].managers == ("product_manager", "it_manager")
        assert policy.agents["qa_worker"].managers == ("it_manager", "product_manager")
        assert "it_manager manages research_worker" in answer["newly_allowed"]

    @pytest.mark.parametrize(
        ("agent", "above"),
        [
            ("qa_worker", "product_manager"),
            ("research_worker", "it_manager"),
            ("devops_worker", "ceo"),
        ],
    )
    def test_leaves_no_agent_without_its_way_up(self, nexus, contract, agent, above):
        answer = call(nexus, "update_org_chart", **self.move(agent=agent, reports_to=above))
        assert answer["error_code"] == "INVALID_PARAMS"
        assert "would break `way up`" in answer["message"]
        assert answer["next_action"].startswith("choose a superior that it reaches")
        assert compile_policy(nexus.id).resolve(agent).superior in ("it_manager", "product_manager")

    def test_moves_nobody_when_one_is_refused(self, nexus, contract):
        assert refused(nexus, "update_org_chart", reason="r", changes=[
            {"agent": "research_worker", "reports_to": "it_manager"},
            {"agent": "hr_manager", "role": "ceo"},
        ]) == "LEVEL_DENIED"  # fmt: skip

    def test_hands_the_lead_of_a_group_on(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        for handle, leads in (("backend_worker", True), ("frontend_worker", False)):
            Agent.objects.filter(handle=handle).update(group=group, name=handle, is_leader=leads)
        handed = [
            {"agent": "frontend_worker", "is_leader": True},
            {"agent": "backend_worker", "is_leader": False},
        ]
        update = {"reason": "r", "changes": handed}
        authorise(nexus, "move frontend_worker group=api")
        assert refused(nexus, "update_org_chart", **update) == "AUTHORISATION_REQUIRED"
        authorise(nexus, "move frontend_worker leads=api")
        done(nexus, "update_org_chart", **update)
        assert compile_policy(nexus.id).agents["frontend_worker"].is_leader

    def test_lets_an_agent_leave_its_group(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        Agent.objects.filter(handle="backend_worker").update(
            group=group, name="one", is_leader=True
        )
        done(nexus, "update_org_chart", **self.move(agent="backend_worker", group=""))
        assert compile_policy(nexus.id).agents["backend_worker"].address == "backend_worker"

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"agent": "hr_manager", "role": "it_manager"}, "LEVEL_DENIED"),
            ({"agent": "hr_manager", "reports_to": "it_manager"}, "LEVEL_DENIED"),
            ({"agent": "hr_lead", "is_leader": True}, "NOT_FOUND"),
            ({"agent": "ceo", "reports_to": "hr_manager"}, "LEVEL_DENIED"),
            ({"agent": "qa_worker", "role": "ceo"}, "LEVEL_DENIED"),
            ({"agent": "qa_worker", "role": "hr_manager"}, "LEVEL_DENIED"),
            ({"agent": "qa_worker", "role": "emperor"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "reports_to": "board"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "reports_to": "qa_worker"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "reports_to": "backend_worker"}, "INVALID_PARAMS"),
            ({"agent": "it_manager", "reports_to": "backend_worker"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "co_managers": ["backend_worker"]}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "co_managers": ["hr_manager"]}, "LEVEL_DENIED"),
            ({"agent": "qa_worker", "group": "nowhere", "name": "x"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "name": "x"}, "INVALID_PARAMS"),
            ({"agent": "qa_worker", "is_leader": True}, "INVALID_PARAMS"),
            ({"agent": "qa_worker"}, "INVALID_PARAMS"),
            ({"agent": "nobody", "reports_to": "ceo"}, "NOT_FOUND"),
            ({"agent": "qa_worker", "level": 1}, "INVALID_PARAMS"),
        ],
    )
    def test_refuses_what_would_break_a_rule(self, nexus, contract, change, code):
        assert refused(nexus, "update_org_chart", **self.move(**change)) == code

    def test_refuses_itself_by_its_old_name_too(self, nexus, contract):
        nexus.aliases.create(alias="hr_lead", agent=Agent.objects.get(handle="hr_manager"))
        change = self.move(agent="hr_lead", role="it_manager")
        assert refused(nexus, "update_org_chart", **change) == "LEVEL_DENIED"

    def test_refuses_one_agent_twice(self, nexus, contract):
        twice = [{"agent": "qa_worker", "reports_to": "product_manager"}] * 2
        assert refused(nexus, "update_org_chart", changes=twice, reason="r") == "INVALID_PARAMS"

    def test_refuses_an_address_that_is_taken(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        Agent.objects.filter(handle="backend_worker").update(
            group=group, name="worker", is_leader=True
        )
        change = self.move(agent="qa_worker", group="api", name="worker")
        assert refused(nexus, "update_org_chart", **change) == "AUTHORISATION_REQUIRED"
        authorise(nexus, "move qa_worker group=api")
        assert refused(nexus, "update_org_chart", **change) == "INVALID_PARAMS"

    @pytest.mark.parametrize("line", ["group=ops", "leads=ops", "leads=api"])
    def test_comes_into_the_group_that_the_line_names(self, nexus, contract, line):
        for slug, handle in (("api", "backend_worker"), ("ops", "frontend_worker")):
            group = Group.objects.create(organisation=nexus, slug=slug, name=slug)
            Agent.objects.filter(handle=handle).update(group=group, name=handle, is_leader=True)
        authorise(nexus, f"move qa_worker {line}")
        change = self.move(agent="qa_worker", group="api", name="qa")
        allowed = line == "leads=api"  # who may come to lead a group may come into it
        answer = call(nexus, "update_org_chart", **change)
        assert answer.get("error_code", "OK") == ("OK" if allowed else "AUTHORISATION_REQUIRED")

    def test_refuses_an_exchange_of_names_without_breaking(self, nexus, contract):
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        names = {"backend_worker": "leader", "frontend_worker": "worker"}
        for handle, name in names.items():
            leads = name == "leader"
            Agent.objects.filter(handle=handle).update(group=group, name=name, is_leader=leads)
        assert refused(nexus, "update_org_chart", reason="r", changes=[
            {"agent": "backend_worker", "name": "worker"},
            {"agent": "frontend_worker", "name": "leader"},
        ]) == "INVALID_PARAMS"  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "code"),
        [("work", "OK"), ("leader", "OK"), ("frontend_worker", "OK"), ("stop", "INVALID_PARAMS")],
    )
    def test_gives_no_words_as_a_name(self, nexus, name, code):
        """Spec: contracts 58."""
        group = Group.objects.create(organisation=nexus, slug="api", name="API")
        place = {"group": group, "name": "one", "is_leader": True}
        Agent.objects.filter(handle="frontend_worker").update(**place)
        authorise(nexus, "move frontend_worker")
        answer = call(nexus, "update_org_chart", **self.move(agent="frontend_worker", name=name))
        assert answer.get("error_code", "OK") == code


class TestListAgents:
    def test_shows_everybody_newest_first(self, nexus):
        answer = done(nexus, "list_agents")
        assert len(answer["agents"]) == 9
        assert answer["policy_version"] == compile_policy(nexus.id).version
        row = next(a for a in answer["agents"] if a["agent"] == "frontend_worker")
        assert row["reports_to"] == "it_manager"
        assert row["co_managers"] == ["product_manager"]

    def test_filters_and_pages(self, nexus, contract):
        done(nexus, "deactivate_agent", agent="qa_worker", reason="over")
        assert [a["agent"] for a in done(nexus, "list_agents", active=False)["agents"]] == [
            "qa_worker"
        ]
        assert len(done(nexus, "list_agents", role="backend_worker")["agents"]) == 1
        seen, cursor = [], None
        while True:
            page = done(nexus, "list_agents", limit=4, **({"cursor": cursor} if cursor else {}))
            seen += [a["agent"] for a in page["agents"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 9

    def test_shows_nobody_of_another_organisation(self, nexus):
        found("dev-team", slug="dev-team")
        assert len(done(nexus, "list_agents")["agents"]) == 9

    def test_refuses_a_cursor_that_no_list_gave(self, nexus):
        assert refused(nexus, "list_agents", cursor="eA") == "INVALID_PARAMS"


class TestTheFiles:
    def test_follow_every_change(
        self, nexus, contract, company_root, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            done(nexus, "create_agent_jd", **NEW)
        org = yaml.safe_load((company_root / "nexus/company/org.yaml").read_text())
        chain = yaml.safe_load((company_root / "nexus/company/chain-of-command.yaml").read_text())
        job = (company_root / "nexus/company/agents/backend_two.md").read_text()
        assert org["agents"]["backend_two"]["role"] == "backend_worker"
        assert chain["reports_to"]["backend_two"] == "it_manager"
        assert chain["levels"][0] == ["board"]
        assert "Keeps the files." in job

    def test_are_not_written_for_a_refused_change(
        self, nexus, company_root, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            refused(nexus, "create_agent_jd", **NEW)
        assert not company_root.exists()

    def test_are_made_again_when_they_are_missing_or_wrong(self, nexus, company_root):
        assert refresh_org_files() == 2
        assert refresh_org_files() == 0
        (company_root / "nexus/company/org.yaml").write_text("organisation: mine")
        assert refresh_org_files() == 1
        held = (company_root / "nexus/company/org.yaml").read_text()
        assert held == org_files(compile_policy(nexus.id))["company/org.yaml"]

    def test_keep_no_policy_that_the_cache_has_dropped(self, nexus):
        """A thousand organisations have more policies than a process has room for."""
        policy = compile_policy(nexus.id)
        org_files(policy)
        kept = weakref.ref(policy)
        del policy
        gc.collect()
        assert kept() is None

    def test_are_made_where_the_process_ended_after_the_commit(self, nexus, contract, company_root):
        """Here nothing follows a commit, as where the process is killed."""
        done(nexus, "create_agent_jd", **NEW)
        done(nexus, "update_agent_jd", agent="backend_worker", title="Senior")
        jobs = company_root / "nexus/company/agents"
        assert not jobs.exists()
        assert refresh_org_files() == 4
        assert "Keeps the files." in (jobs / "backend_two.md").read_text()
        assert (jobs / "backend_worker.md").read_text().startswith("# Senior\n")
        assert refresh_org_files() == 0


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def race(self, *works):
        gate, answers = threading.Barrier(len(works)), []

        def run(work):
            gate.wait()
            try:
                answers.append(work())
            finally:
                connections.close_all()

        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def test_one_of_many_hires_wins_on_one_version(self):
        nexus = found()
        authorise(nexus, *(f"hire backend_{letter}" for letter in "abcd"))
        caller = caller_of(nexus, "hr_manager")
        answers = self.race(*[
            lambda n=n: door.call(
                caller, "create_agent_jd", {**NEW, "handle": f"backend_{'abcd'[n]}"}, now=NOW
            ).body
            for n in range(4)
        ])  # fmt: skip
        codes = sorted(a.get("error_code", "OK") for a in answers)
        assert codes == ["OK", "VERSION_MISMATCH", "VERSION_MISMATCH", "VERSION_MISMATCH"]
        assert Agent.objects.filter(handle__startswith="backend_").count() == 2
        assert Organisation.objects.get().policy_version == caller.policy.version + 1

    def test_one_line_is_used_by_one_of_many(self):
        nexus = found()
        authorise(nexus, "describe backend_worker")
        hr = caller_of(nexus, "hr_manager")
        answers = self.race(*[
            lambda n=n: door.call(
                hr, "update_agent_jd", {"agent": "backend_worker", "title": f"T{n}"}, now=NOW
            ).body
            for n in range(4)
        ])  # fmt: skip
        codes = sorted(a.get("error_code", "OK") for a in answers)
        assert codes.count("OK") == 1
        assert set(codes) <= {"OK", "AUTHORISATION_REQUIRED", "VERSION_MISMATCH"}
        assert OrgChangeLine.objects.exclude(used_at=None).count() == 1

    def test_a_contract_closed_meanwhile_authorises_all_or_nothing(self):
        nexus = found()
        contract = authorise(nexus, "hire backend_two")
        hr, ceo = caller_of(nexus, "hr_manager"), caller_of(nexus, "ceo")
        self.race(
            lambda: door.call(hr, "create_agent_jd", NEW, now=NOW),
            lambda: door.call(
                ceo, "close_contract",
                {"contract_id": contract, "outcome": "cancelled", "reason": "no"}, now=NOW,
            ),
        )  # fmt: skip
        hired = Event.objects.filter(action="agent.hired").first()
        closed = Event.objects.get(action="contract.cancelled")
        assert Agent.objects.filter(handle="backend_two").exists() is (hired is not None)
        assert hired is None or hired.seq < closed.seq
