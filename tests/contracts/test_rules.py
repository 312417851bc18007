"""Who may issue, see, accept, report on, judge and close: whole spaces, against tables by hand."""

import itertools
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from contracts import authority, judging, rules
from contracts.approvals import rules as approval_rules
from contracts.issuing import rules as issuing_rules
from contracts.issuing.rules import GrantedChannel, RequestedChannel
from contracts.judging import submission_of
from contracts.rules import ContractFacts
from contracts.vocabulary import (
    FINAL_STATES,
    MACHINE,
    OPEN_STATES,
    ContractKind,
    ContractMove,
    ContractOutcome,
    ContractState,
    ReportKind,
    VerdictFinding,
)
from core.decision import Allow, Code, Deny
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.vocabulary import ContractScope, ToolMode, Visibility
from tests.decisions import code_of
from tests.oracle import contracts as oracle
from tests.oracle.org import (
    AGENTS,
    BACKEND,
    BOARD,
    CEO,
    CHAIN,
    DEVOPS,
    FRONTEND,
    HR,
    IT,
    MANAGERS,
    PM,
    QA,
    RESEARCH,
    WORKERS,
)
from tests.oracle.reading import compiled_nexus

POLICY = compiled_nexus()
READING = replace(POLICY, settings={"task_visibility": Visibility.CONTACTS})
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def agent(handle: str) -> Agent:
    return POLICY.agents[handle]


def issuing(
    issuer: str, recipient: str, kind=ContractKind.WORK, tool=issuing_rules.CREATE, policy=POLICY
):
    found = issuing_rules.find_assignee(recipient, policy)
    if isinstance(found, Deny):
        return found
    return issuing_rules.can_issue(policy.agents[issuer], found, kind, tool, policy)


def a_contract(
    state=ContractState.PENDING,
    *,
    issuer=IT,
    assignee=BACKEND,
    scope=("src/",),
    verdicts=(),
    **fields,
):
    """A contract with its submission, judged by agents 901, 902, …: not by QA itself."""
    return ContractFacts(
        id="CON-1",
        kind=fields.pop("kind", ContractKind.WORK),
        state=state,
        version=3,
        issuer=BOARD_PARTY if issuer == BOARD else agent(issuer),
        assignee=agent(assignee),
        workspace_scope=scope,
        department=fields.pop("department", "tech"),
        submission=submission_of(7, [(v, 901 + at) for at, v in enumerate(verdicts)]),
        **fields,
    )


def without(policy, tool: str, role: str):
    """The policy with one tool taken from one role."""
    changed = replace(policy.roles[role], tools=policy.roles[role].tools - {tool})
    return replace(policy, roles={**policy.roles, role: changed})


class TestStates:
    def test_are_those_of_the_specification_and_no_other_move_exists(self):
        moves = {
            (str(source), str(step.target))
            for step in MACHINE.steps.values()
            for source in step.sources
        }
        assert moves == set(oracle.MOVES)
        assert {str(s) for s in FINAL_STATES} == set(oracle.FINAL)

    def test_final_ones_have_no_way_out(self):
        assert all(MACHINE.steps_from(state) == () for state in FINAL_STATES)
        assert all(ContractMove.CANCEL in MACHINE.steps_from(state) for state in OPEN_STATES)

    @pytest.mark.parametrize(
        ("state", "move"), list(itertools.product(ContractState, ContractMove))
    )
    def test_a_wrong_move_names_those_that_are_left(self, state, move):
        found = rules.can_move(a_contract(state), move, agent(BACKEND))
        if state in MACHINE.steps[move].sources:
            assert isinstance(found, Allow)
        else:
            assert found.code is Code.INVALID_TRANSITION
            assert found.details["state"] == state
            assert found.details["allowed"] == [
                str(MACHINE.steps[m].target) for m in MACHINE.steps_from(state)
            ]
            assert found.next_action
            refused = re.search("cannot become (.+); (.*)", found.message)
            assert refused is None or refused[1] not in refused[2]

    @pytest.mark.parametrize("state", ContractState)
    def test_a_wrong_move_says_whether_the_state_is_final(self, state):
        for move in ContractMove:
            found = rules.can_move(a_contract(state), move, agent(BACKEND))
            if isinstance(found, Deny):
                assert found.message.endswith("that state is final") is (state in FINAL_STATES)
                is_there = MACHINE.steps[move].target == state
                assert (f"is {state} already" in found.message) is is_there

    @pytest.mark.parametrize(
        ("state", "worker", "issuer"),
        [
            (ContractState.PENDING, "accept it first", f"wait until {BACKEND} accepts it"),
            (ContractState.IN_PROGRESS, "submit the work", f"wait until {BACKEND} submits"),
            (ContractState.REVIEW, f"wait until {IT} closes it", f"wait until {IT} closes it"),
        ],
    )
    def test_a_wrong_move_tells_each_party_its_own_next_step(self, state, worker, issuer):
        wrong = next(move for move in ContractMove if state not in MACHINE.steps[move].sources)
        for who, step in ((BACKEND, worker), (IT, issuer)):
            found = rules.can_move(a_contract(state), wrong, agent(who))
            assert found.next_action.startswith(step)

    @pytest.mark.parametrize("state", ContractState)
    @pytest.mark.parametrize("who", [BACKEND, IT])
    def test_a_wrong_move_sends_nobody_to_wait_for_itself(self, state, who):
        """Nor does it tell a worker, which issues nothing, to issue a follow-up."""
        contract = a_contract(state)
        tried = (
            [
                rules.can_accept(contract, agent(who)),
                rules.can_submit(contract, agent(who), ReportKind.COMPLETION),
            ]
            if who == BACKEND
            else [
                rules.can_close(contract, agent(who), outcome, "why", POLICY)
                for outcome in ContractOutcome
            ]
        )
        for found in tried:
            if not isinstance(found, Allow) and found.code is Code.INVALID_TRANSITION:
                assert who not in found.next_action
                assert (
                    who == IT
                    or state not in FINAL_STATES
                    or (found.next_action.startswith("nothing is left to do"))
                )


class TestCanIssue:
    @pytest.mark.parametrize("who", [PM, HR, BACKEND])
    def test_tells_none_but_contacts_who_is_deactivated(self, who):
        gone = replace(agent(QA), active=False)
        after = replace(POLICY, agents={**POLICY.agents, QA: gone})
        assert issuing(who, QA, policy=after) == issuing(who, QA)
        assert issuing(IT, QA, policy=after).code is Code.RECIPIENT_INACTIVE

    def test_keeps_generate_contract_to_level_two_whoever_has_it(self):
        """Spec: contracts 6."""
        found = issuing(IT, BACKEND, tool=issuing_rules.GENERATE)
        assert found.code is Code.LEVEL_DENIED
        assert found.rule == "generate_contract is for level 2 (spec: contracts 6)"

    def test_answers_every_line_of_the_oracle(self):
        seen = 0
        for tool, issuer, recipient, kind, outcome in oracle.table():
            if outcome == "TOOL_NOT_BOUND":
                continue
            found = issuing(issuer, recipient, ContractKind(kind), tool)
            assert (code_of(found) == "OK") == (outcome == "OK"), (tool, issuer, recipient, kind)
            if outcome != "OK":
                assert found.code in oracle.REFUSALS
                assert found.next_action
                assert found.rule
            seen += 1
        assert seen == 5 * 10 * 4  # holders of the three tools, recipients, kinds

    def test_without_the_tool_the_rule_still_refuses_every_worker(self):
        for issuer, recipient, kind in itertools.product(WORKERS, AGENTS, ContractKind):
            for tool in issuing_rules.KINDS_BY_TOOL:
                assert code_of(issuing(issuer, recipient, kind, tool)) != "OK"

    @pytest.mark.parametrize("handle", AGENTS)
    def test_never_to_oneself(self, handle):
        for tool, kinds in issuing_rules.KINDS_BY_TOOL.items():
            for kind in kinds:
                assert code_of(issuing(handle, handle, kind, tool)) == Code.LEVEL_DENIED

    @pytest.mark.parametrize("handle", AGENTS)
    def test_never_to_the_board(self, handle):
        assert code_of(issuing(handle, BOARD)) == Code.CONTACT_DENIED

    def test_never_to_oneself_whatever_ones_level(self):
        """Spec: contracts 4. An executive at the level of managers is no manager of its own."""
        low = replace(POLICY.roles[CEO], level=issuing_rules.MANAGEMENT_LEVEL)
        policy = replace(POLICY, roles={**POLICY.roles, CEO: low})
        assert not issuing_rules._below(agent(CEO), agent(CEO), policy)
        assert issuing_rules._below(agent(CEO), agent(IT), policy)

    def test_never_upward_or_sideways(self):
        for manager in MANAGERS:
            assert code_of(issuing(manager, CEO)) == Code.LEVEL_DENIED
            for other in set(MANAGERS) - {manager}:
                assert code_of(issuing(manager, other)) == Code.LEVEL_DENIED
        for worker in WORKERS:
            assert code_of(issuing(worker, CHAIN[worker][2])) == Code.LEVEL_DENIED

    def test_to_nobody_outside_the_contacts(self):
        for worker in WORKERS:
            assert code_of(issuing(CEO, worker, tool=issuing_rules.GENERATE)) == Code.CONTACT_DENIED
            assert code_of(issuing(HR, worker)) == Code.CONTACT_DENIED
        for worker in (BACKEND, DEVOPS, QA):
            assert code_of(issuing(PM, worker)) == Code.CONTACT_DENIED
        assert code_of(issuing(IT, RESEARCH)) == Code.CONTACT_DENIED

    def test_names_who_can_take_one_and_says_so_when_nobody_can(self):
        assert issuing(PM, BACKEND).next_action == (
            "issue it to one of: frontend_worker, research_worker"
        )
        assert "no active agent" in issuing(HR, BACKEND).next_action

    def test_a_worker_shared_by_two_managers_takes_contracts_of_both(self):
        assert code_of(issuing(IT, FRONTEND)) == code_of(issuing(PM, FRONTEND)) == "OK"

    def test_a_worker_that_is_no_longer_ones_own_is_refused(self):
        moved = replace(agent(FRONTEND), managers=(IT,))
        policy = replace(POLICY, agents={**POLICY.agents, FRONTEND: moved})
        assert code_of(issuing(PM, FRONTEND, policy=policy)) == Code.CONTACT_DENIED
        loose = replace(POLICY.contacts[PM, FRONTEND], relation="any")
        policy = replace(policy, contacts={**POLICY.contacts, (PM, FRONTEND): loose})
        assert code_of(issuing(PM, FRONTEND, policy=policy)) == Code.LEVEL_DENIED

    def test_the_top_agents_own_assistant_is_no_manager(self):
        role = replace(POLICY.roles[RESEARCH], name="exec_assistant")
        hired = replace(
            agent(RESEARCH), id=99, handle="exec_assistant", role=role.name, managers=(CEO,)
        )
        rule = replace(POLICY.contacts[CEO, IT], recipient=role.name, relation="own")
        policy = replace(
            POLICY,
            roles={**POLICY.roles, role.name: role},
            agents={**POLICY.agents, hired.handle: hired},
            names={**POLICY.names, hired.handle: hired.handle},
            contacts={**POLICY.contacts, (CEO, role.name): rule},
        )
        assert policy.rule_between(policy.agents[CEO], hired) is not None
        found = issuing(CEO, hired.handle, tool=issuing_rules.GENERATE, policy=policy)
        assert code_of(found) == Code.LEVEL_DENIED

    def test_finds_the_recipient_by_its_old_name_too(self):
        assert code_of(issuing(IT, "backend_dev")) == "OK"

    @pytest.mark.parametrize(
        "name", ["nobody", "Backend_worker", "backend_worker ", "bаckend_worker", "", "BOARD"]
    )
    def test_guesses_no_name(self, name):
        assert code_of(issuing(IT, name)) == Code.RECIPIENT_UNKNOWN

    def test_refuses_who_is_deactivated(self):
        gone = replace(agent(BACKEND), active=False)
        policy = replace(POLICY, agents={**POLICY.agents, BACKEND: gone})
        assert code_of(issuing(IT, BACKEND, policy=policy)) == Code.RECIPIENT_INACTIVE

    def test_org_change_needs_a_recipient_with_hrs_tools(self):
        change = (ContractKind.ORG_CHANGE, issuing_rules.GENERATE)
        assert code_of(issuing(CEO, HR, *change)) == "OK"
        policy = POLICY
        for tool in (
            "update_org_chart", "create_agent_jd", "update_agent_jd", "deactivate_agent",
        ):  # fmt: skip
            policy = without(policy, tool, HR)
        assert code_of(issuing(CEO, HR, *change, policy=policy)) == Code.LEVEL_DENIED

    def test_a_denied_tool_is_no_reason_for_an_authorisation(self):
        barred = replace(POLICY.roles[DEVOPS], denied_tools=frozenset({"docker_deploy"}))
        policy = replace(POLICY, roles={**POLICY.roles, DEVOPS: barred})
        approval = (ContractKind.DEPLOYMENT_APPROVAL, issuing_rules.APPROVE)
        assert code_of(issuing(IT, DEVOPS, *approval)) == "OK"
        assert code_of(issuing(IT, DEVOPS, *approval, policy=policy)) == Code.LEVEL_DENIED

    def test_names_the_tool_that_a_kind_comes_from(self):
        found = issuing(IT, DEVOPS, ContractKind.DEPLOYMENT_APPROVAL)
        assert found.code is Code.INVALID_PARAMS
        assert "approve_deployment" in found.message
        assert "approve_deployment" in found.next_action


class TestCanSee:
    def test_covers_every_agent_and_state(self):
        for handle, state, judged in itertools.product(AGENTS, ContractState, (False, True)):
            found = rules.can_see(a_contract(state), agent(handle), POLICY, judged=judged)
            sees = handle in (IT, BACKEND, CEO) or (
                handle == QA and (state is ContractState.REVIEW or judged)
            )
            assert code_of(found) == ("OK" if sees else Code.NOT_FOUND), (handle, state, judged)

    def test_both_managers_of_a_worker_and_those_above_see_its_contracts(self):
        shared = a_contract(issuer=PM, assignee=FRONTEND)
        seeing = {h for h in AGENTS if code_of(rules.can_see(shared, agent(h), POLICY)) == "OK"}
        assert seeing == {PM, FRONTEND, IT, CEO}

    def test_qa_never_sees_another_departments_work_even_if_told_it_judged(self):
        foreign = a_contract(ContractState.REVIEW, issuer=PM, assignee=RESEARCH)
        assert code_of(rules.can_see(foreign, agent(QA), POLICY, judged=True)) == Code.NOT_FOUND

    def test_the_board_s_contract_is_the_top_agents_alone(self):
        top = a_contract(ContractState.REVIEW, issuer=BOARD, assignee=CEO)
        seeing = {h for h in AGENTS if code_of(rules.can_see(top, agent(h), POLICY)) == "OK"}
        assert seeing == {CEO}


class TestCanAccept:
    def test_only_the_assignee_only_while_pending(self):
        for handle, state in itertools.product(AGENTS, ContractState):
            found = rules.can_accept(a_contract(state), agent(handle))
            if handle != BACKEND:
                assert code_of(found) == Code.NOT_YOURS
            else:
                assert (code_of(found) == "OK") == (state is ContractState.PENDING)


def for_the_assignee_at_work(decide):
    """It is allowed to the assignee alone, and only while its contract is in progress."""
    for handle, state in itertools.product(AGENTS, ContractState):
        found = decide(a_contract(state), agent(handle))
        if handle != BACKEND:
            assert code_of(found) == Code.NOT_YOURS
        elif state is ContractState.IN_PROGRESS:
            assert code_of(found) == "OK"
        else:
            assert code_of(found) == Code.INVALID_TRANSITION


class TestCanWorkOn:
    def test_only_the_assignee_only_while_in_progress(self):
        for_the_assignee_at_work(rules.can_work_on)


class TestWhoReadsAReason:
    """Spec: mail 43."""

    @pytest.mark.parametrize(
        ("writer", "told"), [(IT, True), (BACKEND, False), (CEO, False), (BOARD, True)]
    )
    def test_the_assignee_where_its_writer_may_write_to_it(self, writer, told):
        contract = a_contract(assignee=FRONTEND)
        who = BOARD_PARTY if writer == BOARD else agent(writer)
        found = rules.reason_told(contract, who, "Too slow.", READING)
        assert (found == "Too slow.") is told
        assert told or "may not write to frontend_worker" in found

    @pytest.mark.parametrize("issuer", [IT, CEO])
    def test_the_parties_and_who_the_issuer_may_tell(self, issuer):
        contract = a_contract(issuer=issuer)
        told = {
            who
            for who in AGENTS
            if code_of(rules.can_read_reason(contract, agent(who), READING)) == "OK"
        }
        assert told == {issuer, BACKEND} | {
            who
            for who in AGENTS
            if POLICY.rule_between(agent(issuer), agent(who)) is not None
            or POLICY.is_above(agent(who), agent(issuer))
        }


class TestCanReadEvidence:
    """Spec: contracts 53."""

    def test_the_parties_those_above_and_who_reads_the_judge(self):
        contract, judge = a_contract(), agent(QA)
        may = {
            who
            for who in AGENTS
            if code_of(rules.can_read_evidence(contract, judge, agent(who), READING)) == "OK"
        }
        assert may == {IT, BACKEND, CEO, QA}


class TestCanSubmit:
    def test_only_the_assignee_only_while_in_progress(self):
        for kind in ReportKind:
            for_the_assignee_at_work(partial(rules.can_submit, kind=kind))


class TestCanJudge:
    def test_only_qa_of_the_department_only_in_review(self):
        for handle, state in itertools.product(AGENTS, ContractState):
            found = rules.can_judge(a_contract(state), agent(handle), POLICY)
            if handle == BACKEND:
                assert code_of(found) == Code.NOT_YOURS
            elif handle != QA:
                assert code_of(found) == Code.NOT_FOUND
            else:
                assert (code_of(found) == "OK") == (state is ContractState.REVIEW)

    def test_nobody_judges_one_submission_twice(self):
        work = a_contract(ContractState.REVIEW)
        judged = replace(work, submission=submission_of(7, [("FAIL", agent(QA).id)]))
        by_another = replace(work, submission=submission_of(7, [("FAIL", 901)]))
        unsubmitted = replace(work, submission=None)
        assert code_of(rules.can_judge(judged, agent(QA), POLICY)) == Code.INVALID_TRANSITION
        assert code_of(rules.can_judge(by_another, agent(QA), POLICY)) == "OK"
        assert code_of(rules.can_judge(unsubmitted, agent(QA), POLICY)) == Code.INVALID_TRANSITION

    def test_nobody_judges_what_it_is_responsible_for(self):
        judging_manager = replace(
            POLICY.roles[IT], tools=POLICY.roles[IT].tools | {"write_verdict"}
        )
        policy = replace(POLICY, roles={**POLICY.roles, IT: judging_manager})
        for issuer, assignee in ((IT, BACKEND), (PM, FRONTEND)):  # its issuer; its manager
            work = a_contract(ContractState.REVIEW, issuer=issuer, assignee=assignee)
            assert code_of(rules.can_judge(work, agent(IT), policy)) == Code.NOT_YOURS

    def test_nobody_judges_work_of_its_own(self):
        own = a_contract(ContractState.REVIEW, assignee=QA)
        assert code_of(rules.can_judge(own, agent(QA), POLICY)) == Code.NOT_YOURS

    def test_there_is_nothing_to_judge_where_no_code_is_touched(self):
        plain = a_contract(ContractState.REVIEW, scope=())
        assert code_of(rules.can_judge(plain, agent(QA), POLICY)) == Code.NOT_FOUND

    def test_a_co_managed_worker_is_judged_by_its_own_departments_qa(self):
        shared = a_contract(ContractState.REVIEW, issuer=PM, assignee=FRONTEND)
        assert code_of(rules.can_judge(shared, agent(QA), POLICY)) == "OK"

    def test_another_departments_work_is_not_found(self):
        foreign = a_contract(ContractState.REVIEW, issuer=PM, assignee=RESEARCH)
        assert code_of(rules.can_judge(foreign, agent(QA), POLICY)) == Code.NOT_FOUND

    def test_two_departments_without_superiors_share_no_qa(self):
        top = replace(agent(QA), managers=(BOARD,))
        contract = a_contract(ContractState.REVIEW, issuer=BOARD, assignee=CEO)
        assert code_of(rules.can_judge(contract, top, POLICY)) == Code.NOT_FOUND


class TestCanClose:
    def close(self, contract, who, outcome, reason="done", policy=POLICY):
        person = who == BOARD
        return rules.can_close(
            contract, BOARD_PARTY if person else agent(who), outcome, reason, policy
        )

    def test_answers_the_whole_space(self):
        space = itertools.product(
            (*AGENTS, BOARD), ContractState, ContractOutcome, oracle.MAY_PASS, oracle.CODE_WORK
        )
        for who, state, outcome, verdicts, (mode, scope, branch) in space:
            contract = a_contract(
                state, verdicts=verdicts, scope=scope, mode=ToolMode(mode), assigned_branch=branch
            )
            found = code_of(self.close(contract, who, outcome))
            legal = (str(state), str(MACHINE.steps[outcome.move].target)) in oracle.MOVES
            code = oracle.CODE_WORK[mode, scope, branch]
            if outcome is ContractOutcome.REWORK:
                legal = state is ContractState.REVIEW
            if who not in (IT, BOARD) or (
                who == BOARD and outcome is not ContractOutcome.CANCELLED
            ):
                assert found == Code.NOT_YOURS
            elif not legal:
                assert found == Code.INVALID_TRANSITION
            elif outcome is ContractOutcome.PASSED and code and not oracle.MAY_PASS[verdicts]:
                assert found == Code.APPROVAL_REQUIRED
            else:
                assert found == "OK"

    @pytest.mark.parametrize("reason", ["", " ", "\n\t"])
    @pytest.mark.parametrize("outcome", ContractOutcome)
    def test_refuses_an_empty_reason(self, outcome, reason):
        contract = a_contract(ContractState.REVIEW, verdicts=("PASS",))
        assert code_of(self.close(contract, IT, outcome, reason)) == Code.INVALID_PARAMS

    def test_names_who_can_mend_a_missing_verdict(self):
        found = self.close(a_contract(ContractState.REVIEW), IT, ContractOutcome.PASSED)
        assert "ask a QA agent of the department for its verdict" in found.next_action
        assert "QA" in found.message

    def test_the_board_decides_on_its_own_contracts(self):
        own = a_contract(ContractState.REVIEW, issuer=BOARD, assignee=CEO, scope=())
        for outcome in ContractOutcome:
            assert code_of(self.close(own, BOARD, outcome)) == "OK"
            assert code_of(self.close(own, CEO, outcome)) == Code.NOT_YOURS

    def test_the_board_goes_around_no_qa_either(self):
        heir = a_contract(ContractState.REVIEW, issuer=BOARD, assignee=BACKEND)
        assert code_of(self.close(heir, BOARD, ContractOutcome.PASSED)) == Code.APPROVAL_REQUIRED

    def test_nobody_passes_or_fails_what_was_not_submitted(self):
        for assignee, outcome in itertools.product(
            (*WORKERS, *MANAGERS), (ContractOutcome.PASSED, ContractOutcome.FAILED)
        ):
            issuer = CEO if assignee in MANAGERS else IT
            work = a_contract(ContractState.IN_PROGRESS, issuer=issuer, assignee=assignee, scope=())
            assert code_of(self.close(work, issuer, outcome)) == Code.INVALID_TRANSITION

    def test_without_a_submission_no_verdict_counts(self):
        bare = replace(a_contract(ContractState.REVIEW), submission=None)
        assert code_of(self.close(bare, IT, ContractOutcome.PASSED)) == Code.APPROVAL_REQUIRED
        assert code_of(self.close(bare, IT, ContractOutcome.REWORK)) == "OK"


class TestCodeWork:
    def terms(self, issuer, assignee, mode, scope, branch):
        return judging.Terms(
            issuer=agent(issuer), assignee=agent(assignee), mode=ToolMode(mode),
            workspace_scope=scope, assigned_branch=branch,
        )  # fmt: skip

    def test_is_what_the_oracle_says(self):
        for terms, code in oracle.CODE_WORK.items():
            assert bool(judging.code_of(self.terms(IT, BACKEND, *terms))) is code, terms

    def test_is_issued_only_where_qa_can_judge_it(self):
        pairs = {(i, a) for by in oracle.MAY_ISSUE.values() for i, all_ in by.items() for a in all_}
        seen = 0
        for (issuer, assignee), terms in itertools.product(pairs, oracle.CODE_WORK):
            found = judging.can_be_judged(self.terms(issuer, assignee, *terms), POLICY)
            allowed = oracle.may_order(issuer, assignee, terms)
            assert code_of(found) == ("OK" if allowed else Code.SCOPE_DENIED), (issuer, assignee)
            seen += not allowed
        assert seen > 0

    def test_is_refused_for_everyone_once_the_judge_is_gone(self):
        gone = replace(agent(QA), active=False)
        policy = replace(POLICY, agents={**POLICY.agents, QA: gone})
        terms = self.terms(IT, BACKEND, "coding", ("src/",), "")
        assert code_of(judging.can_be_judged(terms, policy)) == Code.SCOPE_DENIED

    def test_of_a_judge_that_writes_where_a_contract_says_needs_another_judge(self):
        files = replace(POLICY.roles[QA].files, contract=ContractScope.WRITE)
        role = replace(POLICY.roles[QA], files=files)
        policy = replace(POLICY, roles={**POLICY.roles, QA: role})
        terms = self.terms(IT, QA, "coding", ("src/",), "")
        assert judging.needs_verdict(terms, policy)
        assert not judging.needs_verdict(terms, POLICY)
        assert code_of(judging.can_be_judged(terms, policy)) == Code.SCOPE_DENIED


class TestSubmitByMail:
    def test_is_for_assignees_without_submit_report_to_their_reader(self):
        for handle, state, to in itertools.product(AGENTS, ContractState, (CEO, IT, PM)):
            contract = a_contract(state, issuer=CEO, assignee=IT, scope=())
            found = code_of(rules.can_submit_by_mail(contract, agent(handle), to, POLICY))
            if handle != IT:
                assert found == Code.NOT_YOURS
            elif state is not ContractState.IN_PROGRESS:
                assert found == Code.INVALID_TRANSITION
            else:
                assert found == ("OK" if to == CEO else Code.INVALID_PARAMS)

    def test_is_not_for_who_has_submit_report(self):
        contract = a_contract(ContractState.IN_PROGRESS)
        found = rules.can_submit_by_mail(contract, agent(BACKEND), IT, POLICY)
        assert found.code is Code.INVALID_PARAMS
        assert "submit_report" in found.next_action


class TestOneContractAtATime:
    def held(self, names):
        terms = {
            "A": {"scope": ("src/a/",), "assigned_branch": "a"},
            "B": {"scope": ("src/b/",), "assigned_branch": "b", "mode": ToolMode.CODING},
            "D": {"scope": ("docs/",)},
        }
        return [replace(a_contract(ContractState.IN_PROGRESS, **terms[n]), id=n) for n in names]

    def test_answers_the_oracle(self):
        for (names, bound), rights in oracle.RIGHTS.items():
            found = authority.choose_contract(self.held(names), bound)
            if rights == "?":
                assert found.code is Code.CONTRACT_REQUIRED
                assert "/api/v1/sessions" in found.next_action
                continue
            assert (found.id if found else "") == rights
            scope = found.workspace_scope if found else ()
            branch = found.assigned_branch if found else ""
            for path in ("src/a/x.py", "src/b/x.py", "docs/x.md"):
                covered = any(path.startswith(folder) for folder in scope)
                assert covered == (path in oracle.COVERS[rights])
            for name in ("a", "b"):
                assert (name == branch) == (name in oracle.COVERS[rights])

    def test_a_contract_that_opens_nothing_is_no_choice(self):
        assert not authority.opens_rights(a_contract(ContractState.IN_PROGRESS, scope=()))
        assert all(authority.opens_rights(c) for c in self.held(("A", "B", "D")))


class TestAtVersion:
    def test_tells_a_stale_version_after_whose_it_is_and_before_the_state(self):
        contract = a_contract(ContractState.REVIEW)  # version 3
        yes, state = Allow("x"), rules.can_move(contract, ContractMove.ACCEPT, agent(BACKEND))
        mine = rules.can_accept(contract, agent(QA))
        for expected, decision, code in (
            (None, yes, "OK"), (3, yes, "OK"), (2, yes, Code.VERSION_MISMATCH),
            (4, yes, Code.VERSION_MISMATCH), (2, state, Code.VERSION_MISMATCH),
            (3, state, Code.INVALID_TRANSITION), (2, mine, Code.NOT_YOURS),
        ):  # fmt: skip
            assert code_of(rules.at_version(contract, expected, decision)) == code
        assert rules.at_version(contract, 2, yes).details == {"expected": 2, "current": 3}


class TestTheVerdictThatIsMissing:
    """Spec: contracts 25."""

    @pytest.mark.parametrize(
        ("finding", "said", "step"),
        [
            (None, "QA has given no verdict on it", "ask a QA agent"),
            (VerdictFinding.FAIL, f"QA's verdict on it is {VerdictFinding.FAIL}", "send it back"),
        ],
    )
    def test_is_said_with_what_the_issuer_can_do(self, finding, said, step):
        found = rules._pass_missing(a_contract(ContractState.REVIEW), finding)
        assert found.message.endswith(said)
        assert found.next_action.startswith(step)
        assert found.details["finding"] == finding


class TestReaderOf:
    def test_is_the_issuer_where_the_chain_of_command_lets_the_sender_reach_it(self):
        for sender, issuer, reader in (
            (BACKEND, IT, IT), (FRONTEND, PM, PM), (RESEARCH, PM, PM), (IT, CEO, CEO),
            (QA, PM, IT), (QA, CEO, IT), (BACKEND, CEO, IT), (IT, HR, HR),
        ):  # fmt: skip
            given = a_contract(issuer=issuer)
            assert rules.reader_of(given, agent(sender), POLICY) == agent(reader)
        given = a_contract(issuer=BOARD)
        assert rules.reader_of(given, agent(CEO), POLICY) is BOARD_PARTY

    def test_is_the_superior_where_the_issuer_is_gone(self):
        gone = replace(a_contract(), issuer=replace(agent(PM), active=False))
        assert rules.reader_of(gone, agent(FRONTEND), POLICY) == agent(IT)


class TestCanUseApproval:
    def approval(self, **fields):
        given = {
            "kind": ContractKind.DEPLOYMENT_APPROVAL,
            "environment": "production",
            "artifact": "sha256:aa",
            "expires_at": NOW + timedelta(hours=1),
            "assignee": DEVOPS,
            "scope": (),
            **fields,
        }
        return a_contract(given.pop("state", ContractState.PENDING), **given)

    def use(self, contract, *, who=DEVOPS, environment="production", artifact="sha256:aa"):
        return approval_rules.can_use_approval(
            contract, agent(who), environment=environment, artifact=artifact, now=NOW
        )

    @pytest.mark.parametrize("state", ContractState)
    def test_only_while_it_is_open_and_not_handed_in(self, state):
        usable = state in (ContractState.PENDING, ContractState.IN_PROGRESS)
        assert (code_of(self.use(self.approval(state=state))) == "OK") == usable

    @pytest.mark.parametrize(
        "fields",
        [
            {"expires_at": NOW},
            {"expires_at": NOW - timedelta(seconds=1)},
            {"expires_at": None},
            {"used_at": NOW - timedelta(minutes=1)},
            {"environment": "staging"},
            {"artifact": "sha256:ab"},
            {"assignee": BACKEND},
            {"kind": ContractKind.WORK},
        ],
    )
    def test_refuses_any_other(self, fields):
        assert code_of(self.use(self.approval(**fields))) == Code.APPROVAL_REQUIRED

    @pytest.mark.parametrize("name", ["Production", "production ", "production\n", "prod", ""])
    def test_knows_one_spelling_only(self, name):
        assert code_of(self.use(self.approval(), environment=name)) == Code.APPROVAL_REQUIRED
        assert code_of(self.use(self.approval(), artifact="SHA256:aa")) == Code.APPROVAL_REQUIRED

    def test_is_nobody_elses(self):
        for handle in set(AGENTS) - {DEVOPS}:
            assert code_of(self.use(self.approval(), who=handle)) == Code.APPROVAL_REQUIRED


class TestReportKinds:
    def test_every_outcome_but_rework_is_a_move_to_that_state(self):
        assert MACHINE.steps[ContractOutcome.REWORK.move].target == ContractState.IN_PROGRESS
        for outcome in set(ContractOutcome) - {ContractOutcome.REWORK}:
            assert MACHINE.steps[outcome.move].target == ContractState(outcome.value)


def test_a_channel_term_is_the_same_for_the_same_wish():
    wish = RequestedChannel(PM, FRONTEND)
    found = issuing_rules.can_grant(wish, agent(PM), agent(FRONTEND), POLICY)
    assert found == GrantedChannel(
        agent(PM), agent(FRONTEND), frozenset({"requirement_clarification"})
    )


def test_modes_are_the_organisations():
    chat_only = replace(POLICY, enabled_modes=frozenset({ToolMode.CHAT_SAFE}))
    assert code_of(issuing_rules.can_open_mode(ToolMode.CODING, POLICY)) == "OK"
    assert code_of(issuing_rules.can_open_mode(ToolMode.CODING, chat_only)) == Code.MODE_DENIED
