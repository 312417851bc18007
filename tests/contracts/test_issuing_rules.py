"""What a contract may say: folders, branches, channels, modes, what is approved."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.approvals import rules as approval_rules
from contracts.issuing import rules as issuing_rules
from contracts.issuing import scopes
from contracts.issuing.rules import GrantedChannel, RequestedChannel
from contracts.vocabulary import ContractKind
from core.decision import NAMED, Code
from orgchart.policy.vocabulary import ToolMode
from tests.decisions import code_of
from tests.oracle.crowds import crowded
from tests.oracle.org import AGENTS, BACKEND, CEO, DEVOPS, FRONTEND, IT, PM, QA, RESEARCH
from tests.oracle.reading import compiled_nexus
from tests.steps import steps_of

POLICY = compiled_nexus()
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLARIFY, QUESTION = "requirement_clarification", "question"


def agent(handle):
    return POLICY.agents[handle]


class TestCanGiveScope:
    def scope(self, *paths, issuer=IT, assignee=BACKEND):
        return code_of(scopes.can_give_scope(paths, agent(issuer), agent(assignee), POLICY))

    @pytest.mark.parametrize(
        "path", ["src/", "src/api/", "app", "tests/", "agents/backend_worker/workspace/", "源码/"]
    )
    def test_takes_folders_of_work(self, path):
        assert self.scope(path) == "OK"

    @pytest.mark.parametrize(
        "path",
        ["", ".", "/", "/etc/", "..", "../x", "src/../..", "src//api", "src\\api", "~/x", "a\x00b",
         "src/./api", "a\u202eb", "e\u0301/", "x" * 1025, "a/" + "y" * 256, "src\n"],
    )  # fmt: skip
    def test_refuses_what_is_no_plain_relative_path(self, path):
        assert self.scope("src/", path) == Code.SCOPE_DENIED

    @pytest.mark.parametrize(
        "path",
        ["company/", "company/org.yaml", "company/agents/x.md", "agents/", "agents/ceo/",
         "agents/frontend_worker/workspace/", "equipment/", "backlog/", "docs/", "docs/prd/",
         "Docs/PRD/", "AGENTS/CEO/", ".env", "src/.env", ".git/", "docker/", "src/id_rsa"],
    )  # fmt: skip
    def test_gives_nothing_that_is_denied_or_kept_by_others(self, path):
        assert self.scope(path) == Code.SCOPE_DENIED

    @pytest.mark.parametrize(
        "path",
        ["reports/", "REPORTS/HR/", "reports/hr/", "reports/qa/", "reports/tech/",
         "reports/product/", "company/contracts/", "agents/hr_manager/"],
    )  # fmt: skip
    def test_gives_nothing_that_managers_read_or_the_issuer_is_denied(self, path):
        assert self.scope(path) == Code.SCOPE_DENIED

    def test_gives_nothing_that_only_the_issuer_is_denied(self):
        role = replace(POLICY.roles[IT], files=replace(POLICY.roles[IT].files, deny=("a/b/",)))
        policy = replace(POLICY, roles={**POLICY.roles, IT: role})
        for path, expected in {
            "a/b/c/": "SCOPE_DENIED",
            "a/": "SCOPE_DENIED",
            "a/c/": "OK",
        }.items():
            found = scopes.can_give_scope([path], agent(IT), agent(BACKEND), policy)
            assert code_of(found) == expected, path

    def test_takes_none_at_all(self):
        assert self.scope() == "OK"

    def test_goes_through_the_company_once_however_many_folders_are_given(self):
        more = {f"a{n}": replace(agent(FRONTEND), handle=f"a{n}") for n in range(200)}
        large = replace(POLICY, agents={**POLICY.agents, **more})

        def steps(count, policy):
            paths = [f"src/{n}/" for n in range(count)]
            return steps_of(lambda: scopes.can_give_scope(paths, agent(IT), agent(BACKEND), policy))

        ten, twenty = (steps(count, large) - steps(count, POLICY) for count in (10, 20))
        assert twenty < 1.1 * ten

    def test_looks_at_whole_parts(self):
        assert self.scope("equipment-list/", "companyx/", "docs-src/") == "OK"

    def test_nobody_is_given_another_agents_home(self):
        for assignee, other in itertools.permutations(AGENTS, 2):
            assert self.scope(f"agents/{other}/", assignee=assignee) == Code.SCOPE_DENIED

    def test_keeps_devops_its_own_folders(self):
        assert self.scope("docker/", assignee=DEVOPS) == "OK"
        assert self.scope("docker/", assignee=BACKEND) == Code.SCOPE_DENIED


class TestCanIssue:
    @pytest.mark.parametrize("recipient", [RESEARCH, PM])
    def test_names_some_of_a_crowd(self, recipient):
        """The answer and its event would else grow with the company."""
        policy = crowded(POLICY, 99, worker=BACKEND, superior=IT)
        decision = issuing_rules.can_issue(
            agent(IT), agent(recipient), ContractKind.WORK, "create_contract", policy
        )
        assert code_of(decision) != "OK"
        assert decision.next_action.count("backend_worker_") < NAMED
        assert decision.message.count("backend_worker_") < NAMED
        assert len(decision.details.get("allowed_contacts", ())) <= NAMED
        assert " more" in decision.next_action


class TestCanGrant:
    def grant(self, sender, recipient, types=None, *, issuer=PM, assignee=FRONTEND):
        wish = RequestedChannel(sender, recipient, None if types is None else frozenset(types))
        return issuing_rules.can_grant(wish, agent(issuer), agent(assignee), POLICY)

    def test_opens_only_what_a_rule_holds_ready_for_the_assignee_by_its_own_manager(self):
        opened = set()
        for issuer, assignee in itertools.product(AGENTS, repeat=2):
            for sender, recipient in itertools.product(AGENTS, repeat=2):
                found = self.grant(sender, recipient, issuer=issuer, assignee=assignee)
                if isinstance(found, GrantedChannel):
                    opened.add((issuer, assignee, sender, recipient))
        assert opened == {
            (issuer, FRONTEND, *pair)
            for issuer in (IT, PM)
            for pair in ((PM, FRONTEND), (FRONTEND, PM))
        }

    def test_without_types_gives_all_that_the_rule_holds(self):
        assert self.grant(PM, FRONTEND).types == {CLARIFY}
        assert self.grant(FRONTEND, PM, issuer=IT).types == {QUESTION}

    @pytest.mark.parametrize(
        "types", [["report"], [CLARIFY, "info"], ["escalation"], ["contract"], ["nonsense"], []]
    )
    def test_gives_no_type_beyond_the_rule_and_an_empty_list_gives_none(self, types):
        assert code_of(self.grant(PM, FRONTEND, types)) == Code.MAIL_TYPE_DENIED

    def test_gives_the_types_asked_for(self):
        assert self.grant(PM, FRONTEND, [CLARIFY]).types == {CLARIFY}

    @pytest.mark.parametrize(
        ("sender", "recipient", "code"),
        [
            ("nobody", FRONTEND, Code.RECIPIENT_UNKNOWN),
            (PM, "nobody", Code.RECIPIENT_UNKNOWN),
            (FRONTEND, "board", Code.CONTACT_DENIED),
            ("board", FRONTEND, Code.CONTACT_DENIED),
            (FRONTEND, FRONTEND, Code.CONTACT_DENIED),
            (FRONTEND, BACKEND, Code.CONTACT_DENIED),
            (FRONTEND, CEO, Code.CONTACT_DENIED),
            (IT, FRONTEND, Code.CONTACT_DENIED),
            (PM, RESEARCH, Code.CONTACT_DENIED),
        ],
    )
    def test_refuses_any_other_pair(self, sender, recipient, code):
        assert code_of(self.grant(sender, recipient)) == code

    def test_the_top_agent_opens_no_channel_over_a_managers_head(self):
        found = self.grant(PM, FRONTEND, issuer=CEO, assignee=PM)
        assert found.code is Code.LEVEL_DENIED

    def test_an_old_name_opens_the_same_channel(self):
        assert self.grant("pm", "frontend_dev") == self.grant(PM, FRONTEND)

    def test_who_is_gone_gets_no_channel(self):
        gone = replace(agent(PM), active=False)
        policy = replace(POLICY, agents={**POLICY.agents, PM: gone})
        wish = RequestedChannel(FRONTEND, PM)
        found = issuing_rules.can_grant(wish, agent(IT), agent(FRONTEND), policy)
        assert found.code is Code.RECIPIENT_INACTIVE


class TestCanOpenMode:
    @pytest.mark.parametrize("mode", ToolMode)
    def test_takes_only_what_the_organisation_enables(self, mode):
        for enabled in (set(ToolMode), {ToolMode.CHAT_SAFE}, set()):
            policy = replace(POLICY, enabled_modes=frozenset(enabled))
            found = code_of(issuing_rules.can_open_mode(mode, policy))
            assert found == ("OK" if mode in enabled else Code.MODE_DENIED)


class TestCanApprove:
    def approve(self, environment="production", artifact="sha256:" + "a" * 64, wait=60):
        return approval_rules.can_approve(environment, artifact, NOW + timedelta(seconds=wait), NOW)

    def test_takes_one_environment_and_one_digest_ahead(self):
        assert code_of(self.approve()) == "OK"
        assert code_of(self.approve("staging-2", "registry/app@sha256:" + "b" * 64)) == "OK"

    @pytest.mark.parametrize(
        "environment", ["Production", "production ", " production", "production\n", "pro duction",
                        "prоduction", "", "1", "-x", "x" * 64],
    )  # fmt: skip
    def test_knows_one_spelling_of_an_environment(self, environment):
        assert "environment" in self.approve(environment).details

    @pytest.mark.parametrize("artifact", ["", " ", "sha256: a", "a\nb", "-rm", "x" * 256, "a\x00"])
    def test_takes_no_odd_artefact(self, artifact):
        assert "artifact" in self.approve(artifact=artifact).details

    @pytest.mark.parametrize("wait", [0, -1])
    def test_takes_no_time_that_has_gone_by(self, wait):
        assert "expires_at" in self.approve(wait=wait).details


def test_qa_is_given_folders_to_read():
    assert code_of(scopes.can_give_scope(["src/"], agent(IT), agent(QA), POLICY)) == "OK"
