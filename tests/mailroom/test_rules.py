"""Who may send what: every case of Spec: mail 5, mail 8 against the oracle."""

from collections import Counter
from dataclasses import replace

import pytest

from core.decision import NAMED, Allow, Code, Deny
from mailroom import rules
from mailroom.rules import Channel
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.parties import BOARD_PARTY
from tests.decisions import code_of
from tests.oracle import mail as oracle
from tests.oracle.crowds import crowded
from tests.oracle.org import (
    AGENTS,
    ALIASES,
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
from tests.oracle.reading import PACKS

POLICY = policy_of(sound_pack(PACKS / "nexus"))
TYPES = oracle.MAIL_TYPES


def agent(handle):
    return POLICY.agents[handle]


def channels_at(sender, recipient, mail_type, state):
    """What a contract in that state leaves open; the services close grants as it ends."""
    one, other = agent(sender).id, agent(recipient).id
    if state in oracle.OPEN:
        return [Channel("CON-1", one, other, frozenset({mail_type}))]
    if state == "other_pair":
        return [Channel("CON-1", agent(IT).id, agent(QA).id, frozenset({mail_type}))]
    if state == "other_way":
        return [Channel("CON-1", other, one, frozenset({mail_type}))]
    if state == "other_type":
        return [Channel("CON-1", one, other, frozenset(TYPES) - {mail_type})]
    return []


def ruling(sender, recipient, mail_type, state="none", policy=POLICY):
    """What send_mail decides, without a database."""
    who = policy.agents[sender]
    found = rules.find_party(recipient, policy)
    if isinstance(found, Deny):
        return found
    channels = [] if recipient == BOARD else channels_at(sender, recipient, mail_type, state)
    return rules.can_mail(who, found, mail_type, policy, channels)


def sent(sender, recipient, mail_type, state="none", policy=POLICY):
    if sender == recipient:
        return "CONTACT_DENIED"
    return code_of(ruling(sender, recipient, mail_type, state, policy))


def with_rule(sender, recipient, **changes):
    """The policy with one pair's rule changed."""
    key = (agent(sender).role, agent(recipient).role)
    changed = replace(POLICY.contacts[key], **changes)
    return replace(POLICY, contacts={**POLICY.contacts, key: changed})


class TestTheWholeSpace:
    def test_is_decided_as_specified_for_every_pair_type_and_contract_state(self):
        table = [line for line in oracle.table() if line[0] != line[1]]
        wrong = [
            (line, found) for line in table if (found := code_of(ruling(*line[:4]))) != line[4]
        ]
        assert wrong == []
        assert len(table) == 9 * 9 * 13 * 11

    def test_holds_every_answer_that_a_pair_can_have(self):
        found = Counter(line[4] for line in oracle.table())
        assert set(found) == {"OK", "CONTACT_DENIED", "MAIL_TYPE_DENIED", "CONTRACT_REQUIRED"}
        assert found["CONTACT_DENIED"] > found["OK"] > 0

    @pytest.mark.parametrize("sender", AGENTS)
    def test_lets_nobody_write_to_itself(self, sender):
        for mail_type in TYPES:
            decision = rules.can_mail(agent(sender), agent(sender), mail_type, POLICY)
            assert code_of(decision) == "CONTACT_DENIED"

    @pytest.mark.parametrize("gone", AGENTS)
    def test_refuses_a_deactivated_recipient_to_everybody(self, gone):
        agents = {**POLICY.agents, gone: replace(agent(gone), active=False)}
        policy = replace(POLICY, agents=agents)
        for sender in AGENTS:
            for mail_type in TYPES:
                expected = oracle.expected(sender, gone, mail_type, inactive=frozenset({gone}))
                assert code_of(ruling(sender, gone, mail_type, policy=policy)) == expected

    @pytest.mark.parametrize("gone", AGENTS)
    def test_says_who_is_deactivated_to_its_contacts_only(self, gone):
        """The refusal of an agent that is no contact is one and the same, active or not."""
        agents = {**POLICY.agents, gone: replace(agent(gone), active=False)}
        policy = replace(POLICY, agents=agents)
        for sender in set(AGENTS) - {gone}:
            if oracle.CONTACT[sender, gone] in ("Y", "*"):
                continue
            for mail_type in (*TYPES, "gossip"):
                refusal = ruling(sender, gone, mail_type, policy=policy)
                assert refusal == ruling(sender, gone, mail_type)
                assert refusal.code == "CONTACT_DENIED"

    @pytest.mark.parametrize("name", ["nobody", "", "CEO", "ceo ", "c\u0435o", "ceo\x00", "%"])
    def test_knows_nobody_by_a_name_that_only_looks_like_one(self, name):
        assert code_of(rules.find_recipient(name, POLICY)) == "RECIPIENT_UNKNOWN"

    def test_finds_everybody_by_handle_and_by_old_name(self):
        for name, handle in [*zip(AGENTS, AGENTS, strict=True), *ALIASES.items()]:
            assert rules.find_recipient(name, POLICY).handle == handle


class TestC01TheCeoWritesToManagersOnly:
    def test_managers_yes(self):
        assert [sent(CEO, to, "info") for to in MANAGERS] == ["OK"] * 3

    def test_workers_never(self):
        found = {sent(CEO, to, kind) for to in WORKERS for kind in TYPES}
        assert found == {"CONTACT_DENIED"}


class TestC02AManagerWritesToItsWorkersItsCeoAndOtherManagersUnderConditions:
    OWN = {IT: {BACKEND, FRONTEND, DEVOPS, QA}, HR: set(), PM: {RESEARCH, FRONTEND}}

    @pytest.mark.parametrize("manager", MANAGERS)
    def test_own_workers_and_no_others(self, manager):
        reached = {w for w in WORKERS if sent(manager, w, "info") != "CONTACT_DENIED"}
        assert reached == self.OWN[manager]

    @pytest.mark.parametrize("manager", MANAGERS)
    def test_the_ceo(self, manager):
        assert sent(manager, CEO, "report") == "OK"

    @pytest.mark.parametrize(
        ("one", "other", "carried"),
        [
            (IT, HR, {"tool_request", "staffing_request"}),
            (HR, IT, {"tool_request", "staffing_request"}),
            (IT, PM, {"tech_review", "feasibility_request"}),
            (PM, IT, {"feasibility_request"}),
            (HR, PM, {"staffing_request"}),
            (PM, HR, {"staffing_request"}),
        ],
    )
    def test_other_managers_with_the_named_types_only(self, one, other, carried):
        assert {kind for kind in TYPES if sent(one, other, kind) == "OK"} == carried

    def test_two_managers_of_one_role_do_not_share_workers(self):
        second = replace(agent(IT), id=90, handle="it_manager_2")
        agents = {**POLICY.agents, "it_manager_2": second}
        policy = replace(POLICY, agents=agents)
        for one, other in ((second, agent(BACKEND)), (agent(BACKEND), second)):
            assert code_of(rules.can_mail(one, other, "info", policy)) == "CONTACT_DENIED"


class TestC03AWorkerWritesToItsOwnManagerOnly:
    @pytest.mark.parametrize("worker", WORKERS)
    def test_no_one_else(self, worker):
        _, _, superior, beside = CHAIN[worker]
        reached = {
            to for to in (*AGENTS, BOARD) if to != worker and sent(worker, to, "question") == "OK"
        }
        assert reached == {superior}
        with_grant = {
            to
            for to in AGENTS
            if to != worker and sent(worker, to, "question", "in_progress") == "OK"
        }
        assert with_grant == {superior, *beside}


class TestC04WorkersDoNotWriteToEachOther:
    def test_in_no_type_and_under_no_contract(self):
        found = {
            sent(one, other, kind, state)
            for one in WORKERS
            for other in WORKERS
            if one != other
            for kind in TYPES
            for state in oracle.CONTRACT_STATES
        }
        assert found == {"CONTACT_DENIED"}


class TestC05DepartmentsMeetThroughTheirManagers:
    def test_no_worker_reaches_another_department(self):
        for worker in WORKERS:
            _, _, superior, beside = CHAIN[worker]
            for other in set(MANAGERS) - {superior, *beside}:
                for kind in TYPES:
                    assert sent(worker, other, kind, "in_progress") == "CONTACT_DENIED"


class TestC06AViolationIsOneOfThoseThatAreTold:
    def test_whom_what_and_without_contract(self):
        assert {
            Code.CONTACT_DENIED,
            Code.MAIL_TYPE_DENIED,
            Code.CONTRACT_REQUIRED,
        } == rules.VIOLATIONS


class TestC07AContractIsNoMailThatAnybodySends:
    @pytest.mark.parametrize("mail_type", sorted(oracle.ISSUED_BY))
    def test_comes_only_from_its_tool(self, mail_type):
        for sender in AGENTS:
            for recipient in AGENTS:
                assert sent(sender, recipient, mail_type, "in_progress") != "OK"

    def test_is_refused_with_the_name_of_the_tool_that_the_sender_has(self):
        decision = ruling(CEO, IT, "contract")
        assert decision.next_action == "use generate_contract"
        decision = ruling(BACKEND, IT, "verdict")
        assert "it_manager" in decision.next_action


class TestSection43TheCeoReportsToTheBoard:
    def test_with_a_report_and_nothing_else(self):
        assert {kind for kind in TYPES if sent(CEO, BOARD, kind) == "OK"} == {"report"}

    @pytest.mark.parametrize("sender", [a for a in AGENTS if a != CEO])
    def test_and_nobody_else_does(self, sender):
        assert {sent(sender, BOARD, kind) for kind in TYPES} == {"CONTACT_DENIED"}


class TestSection44AnEscalationGoesOneStepUp:
    @pytest.mark.parametrize("sender", [a for a in AGENTS if a != CEO])
    def test_to_the_direct_superior_whoever_else_is_a_contact(self, sender):
        reached = {to for to in AGENTS if to != sender and sent(sender, to, "escalation") == "OK"}
        assert reached == {oracle.ESCALATES_TO[sender]}
        assert isinstance(rules.can_escalate_to(agent(sender), POLICY), Allow)

    def test_and_the_ceo_has_nobody_above(self):
        decision = rules.can_escalate_to(agent(CEO), POLICY)
        assert (decision.code, "write_note" in decision.next_action) == (Code.LEVEL_DENIED, True)


class TestARule:
    def test_with_an_empty_list_of_types_means_none(self):
        policy = with_rule(IT, BACKEND, types=frozenset())
        assert {sent(IT, BACKEND, kind, policy=policy) for kind in TYPES} == {"MAIL_TYPE_DENIED"}

    def test_without_a_list_means_all_that_the_senders_ceiling_gives(self):
        policy = with_rule(IT, HR, types=None)
        found = {kind for kind in TYPES if sent(IT, HR, kind, policy=policy) == "OK"}
        assert found == oracle.ALLOWED[IT, BACKEND]

    def test_never_gives_more_than_the_ceiling(self):
        policy = with_rule(CEO, IT, types=frozenset(TYPES))
        found = {kind for kind in TYPES if sent(CEO, IT, kind, policy=policy) == "OK"}
        assert found == {"report", "info"}

    def test_of_contact_is_asked_before_that_of_type(self):
        assert sent(BACKEND, CEO, "no_such_type") == "CONTACT_DENIED"
        assert sent(BACKEND, IT, "no_such_type") == "MAIL_TYPE_DENIED"

    def test_of_type_is_asked_before_that_of_contract(self):
        assert sent(FRONTEND, PM, "report") == "MAIL_TYPE_DENIED"
        assert sent(FRONTEND, PM, "question") == "CONTRACT_REQUIRED"

    def test_that_needs_a_contract_says_who_gets_one(self):
        def step(sender, recipient, mail_type):
            return rules.can_mail(agent(sender), agent(recipient), mail_type, POLICY).next_action

        assert "create_contract" in step(PM, FRONTEND, "requirement_clarification")
        assert "ask it_manager for one" in step(FRONTEND, PM, "question")


class TestARefusal:
    def test_names_the_contacts_and_a_step_that_can_really_be_taken(self):
        decision = ruling(IT, RESEARCH, "info")
        named = decision.details["allowed_contacts"]
        assert named == sorted(
            to for to in AGENTS if to != IT and sent(IT, to, "x") != "CONTACT_DENIED"
        )
        assert decision.next_action == f"write to one of: {', '.join(named)}"
        assert "not authorized to contact research_worker" in decision.message

    def test_of_a_type_names_those_that_would_pass(self):
        decision = ruling(IT, PM, "info")
        for kind in decision.details["allowed_types"]:
            assert sent(IT, PM, kind) == "OK"

    @pytest.mark.parametrize(("more", "said"), [(99, "and 76 more"), (23, None)])
    def test_of_a_crowd_names_thirty_and_counts_the_rest(self, more, said):
        policy = crowded(POLICY, more, worker=BACKEND, superior=IT)
        decision = rules.can_mail(agent(IT), policy.agents[RESEARCH], "info", policy)
        assert len(decision.details["allowed_contacts"]) == NAMED
        assert (said or "Allowed contacts") in decision.message
        assert ("more" in decision.message) is (said is not None)


class TestAnAttachment:
    @pytest.mark.parametrize(
        ("sender", "path", "code"),
        [
            (CEO, "reports/tech/2026.md", "OK"),
            (CEO, "src/app.py", "SCOPE_DENIED"),
            (BACKEND, "agents/backend_worker/notes.md", "OK"),
            (BACKEND, "agents/frontend_worker/notes.md", "SCOPE_DENIED"),
            (BACKEND, "tests/test_app.py", "OK"),
            (BACKEND, "tests/../.env", "SCOPE_DENIED"),
            (BACKEND, "agents/backend_worker/.env", "SCOPE_DENIED"),
            (BACKEND, "/etc/passwd", "SCOPE_DENIED"),
            (RESEARCH, "docs/prd/search.md", "OK"),
        ],
    )
    def test_is_inside_what_its_sender_may_read(self, sender, path, code):
        assert code_of(rules.can_attach([path], agent(sender), BOARD_PARTY, POLICY)) == code

    def test_one_outside_refuses_the_mail(self):
        paths = ["tests/a.py", "src/a.py"]
        assert code_of(rules.can_attach(paths, agent(BACKEND), agent(IT), POLICY)) == "SCOPE_DENIED"
        under = rules.can_attach(paths, agent(BACKEND), agent(IT), POLICY, ["src/"])
        assert code_of(under) == "OK"

    @pytest.mark.parametrize(
        ("sender", "recipient", "path", "code"),
        [
            (IT, HR, "reports/tech/2026.md", "SCOPE_DENIED"),
            (CEO, HR, "reports/tech/2026.md", "SCOPE_DENIED"),
            (CEO, HR, "Reports/tech/2026.md", "SCOPE_DENIED"),
            (CEO, IT, "reports/hr/2026.md", "SCOPE_DENIED"),
            (CEO, IT, "reports/tech/2026.md", "OK"),
            (CEO, HR, "agents/ceo/notes/1.md", "OK"),
            (
                IT,
                BACKEND,
                "agents/it_manager/notes/1.md",
                "OK",
            ),  # denied to others, its own to give
            (HR, IT, "agents/hr_manager/notes/1.md", "OK"),
            (IT, PM, "agents/backend_worker/workspace/src/a.py", "SCOPE_DENIED"),
            (IT, CEO, "agents/backend_worker/workspace/src/a.py", "SCOPE_DENIED"),
            (IT, HR, "agents/backend_worker/workspace/tests/a.py", "SCOPE_DENIED"),
            (IT, PM, "agents/backend_worker/workspace/docs/a.md", "OK"),
            (FRONTEND, PM, "tests/frontend/a.ts", "SCOPE_DENIED"),  # its own work, but code
            (FRONTEND, PM, "agents/frontend_worker/sketch.md", "OK"),
            (BACKEND, IT, "tests/a.py", "OK"),
        ],
    )
    def test_that_its_recipient_is_denied_is_its_senders_own(self, sender, recipient, path, code):
        """Spec: mail 44."""
        decision = rules.can_attach([path], agent(sender), agent(recipient), POLICY)
        assert code_of(decision) == code


class TestSubmittingByMail:
    @pytest.mark.parametrize(
        ("mail_type", "contract", "code"),
        [
            ("report", "CON-1", "OK"), ("report", None, "INVALID_PARAMS"),
            ("report", "", "INVALID_PARAMS"), ("info", "CON-1", "INVALID_PARAMS"),
            ("escalation", "CON-1", "INVALID_PARAMS"),
        ],
    )  # fmt: skip
    def test_takes_a_report_that_names_its_contract(self, mail_type, contract, code):
        assert code_of(rules.can_submit_by_mail(mail_type, contract)) == code


class TestEscalatingPastWhoLeft:
    """Spec: escalation 1."""

    def after(self, superior, **fields):
        """The worker's policy when its manager left and the next above is this one."""
        worker = replace(agent(BACKEND), managers=(superior,), reports_to=IT, **fields)
        return worker, replace(POLICY, agents={**POLICY.agents, BACKEND: worker})

    def test_says_that_the_own_superior_is_deactivated(self):
        found = rules.can_escalate_to(*self.after(CEO))
        assert code_of(found) == "RECIPIENT_INACTIVE"

    def test_of_who_never_reached_its_superior_is_no_contact(self):
        worker = replace(agent(BACKEND), managers=(CEO,), reports_to=CEO)
        policy = replace(POLICY, agents={**POLICY.agents, BACKEND: worker})
        assert code_of(rules.can_escalate_to(worker, policy)) == "CONTACT_DENIED"


@pytest.mark.parametrize(
    ("waiting", "code"),
    [(0, "OK"), (rules.MOST_WAITING, "OK"), (rules.MOST_WAITING + 1, "QUOTA_EXCEEDED")],
)
def test_so_many_escalations_of_a_thread_wait(waiting, code):
    """Spec: escalation 20."""
    assert code_of(rules.can_wait_with(waiting, agent(BACKEND))) == code


class TestTheMailOfOneWhoLeft:
    @pytest.mark.parametrize("reader", [IT, CEO, QA, BACKEND])
    @pytest.mark.parametrize("active", [True, False])
    def test_is_read_by_the_next_above_alone(self, reader, active):
        leaver = replace(agent(BACKEND), active=active)
        may = rules.may_read_left_mail(agent(reader), leaver)
        assert may is (reader == IT and not active)

    def test_needs_one_who_left(self):
        assert not rules.may_read_left_mail(agent(IT), None)


class TestATypeThatIsRefused:
    def test_names_the_allowed_ones_and_the_contract_that_opens_them(self):
        closed = replace(POLICY.contacts[CEO, IT], needs_contract=True)
        policy = replace(POLICY, contacts={**POLICY.contacts, (CEO, IT): closed})
        found = rules.can_mail(agent(CEO), agent(IT), "escalation", policy)
        assert found.next_action.startswith("send one of: ")
        assert found.next_action.endswith(", under a contract that grants this channel")
        assert "none" not in found.message
        open_one = rules.can_mail(agent(CEO), agent(IT), "escalation", POLICY)
        assert open_one.next_action.startswith("send one of: ")
        assert "under a contract" not in open_one.next_action

    def test_is_relayed_by_the_superior_where_none_is_allowed(self):
        rule = replace(POLICY.contacts[CEO, IT], types=frozenset())
        policy = replace(POLICY, contacts={**POLICY.contacts, (CEO, IT): rule})
        found = rules.can_mail(agent(CEO), agent(IT), "info", policy)
        assert found.next_action == "ask board to relay it"
        assert found.message.endswith("Allowed types: none")


class TestAChannel:
    @pytest.mark.parametrize(
        ("sender", "recipient", "types", "code"),
        [
            (CEO, IT, {"info"}, "OK"), (CEO, HR, {"info"}, "CONTRACT_REQUIRED"),
            (HR, IT, {"info"}, "CONTRACT_REQUIRED"), (IT, CEO, {"info"}, "CONTRACT_REQUIRED"),
            (CEO, IT, {"report"}, "CONTRACT_REQUIRED"), (CEO, IT, set(), "CONTRACT_REQUIRED"),
        ],
    )  # fmt: skip
    def test_opens_one_way_between_two_agents_for_its_types(self, sender, recipient, types, code):
        channel = Channel("CON-1", agent(sender).id, agent(recipient).id, frozenset(types))
        policy = with_rule(CEO, IT, needs_contract=True)
        found = rules.can_mail(agent(CEO), agent(IT), "info", policy, [channel])
        assert code_of(found) == code
