"""Who may change whom: every pair of the NEXUS company, by hand."""

from dataclasses import replace

import pytest

from contracts.vocabulary import OrgAct
from core.decision import Allow, Code, Deny
from governance.staff import rules
from orgchart.catalogue import CatalogueEntry, Source
from orgchart.policy.vocabulary import ToolMode
from tests.oracle.org import AGENTS
from tests.oracle.reading import compiled_nexus

BOTH = frozenset(ToolMode)
CODING = frozenset({ToolMode.CODING})


@pytest.fixture(scope="module")
def nexus():
    return compiled_nexus()


def allowed(decision):
    return isinstance(decision, Allow)


class TestManage:
    @pytest.mark.parametrize("target", AGENTS)
    def test_lets_hr_change_everybody_but_itself_and_the_top(self, nexus, target):
        decision = rules.can_manage(nexus.agents["hr_manager"], nexus.agents[target], nexus)
        assert allowed(decision) is (target not in ("hr_manager", "ceo"))
        if not allowed(decision):
            assert decision.code is Code.LEVEL_DENIED

    def test_refuses_any_agent_of_a_higher_level(self, nexus):
        worker, manager = nexus.agents["qa_worker"], nexus.agents["it_manager"]
        decision = rules.can_manage(worker, manager, nexus)
        assert decision.message.endswith("it_manager is above qa_worker")

    def test_refuses_a_second_holder_of_the_organisations_tools(self, nexus):
        twin = replace(nexus.agents["hr_manager"], handle="hr_two", id=99)
        assert not allowed(rules.can_manage(nexus.agents["hr_manager"], twin, nexus))

    def test_refuses_any_agent_that_reports_to_the_board(self, nexus):
        odd = replace(nexus.agents["qa_worker"], managers=("board",))
        assert not allowed(rules.can_manage(nexus.agents["hr_manager"], odd, nexus))


class TestGiveRole:
    @pytest.mark.parametrize("role", AGENTS)
    def test_refuses_roles_above_and_those_that_change_the_organisation(self, nexus, role):
        decision = rules.can_give_role(nexus.agents["hr_manager"], nexus.roles[role], nexus)
        assert allowed(decision) is (role not in ("ceo", "hr_manager"))


class TestName:
    def test_takes_a_free_one_and_that_of_its_own_role(self, nexus):
        role = nexus.roles["qa_worker"]
        assert allowed(rules.can_name("tester", role, nexus))
        gone = {k: v for k, v in nexus.names.items() if k != "qa_worker"}
        assert allowed(rules.can_name("qa_worker", role, replace(nexus, names=gone)))

    @pytest.mark.parametrize("name", ["board", "system", "ceo", "pm", "hr.manager", "qa_worker"])
    def test_refuses_what_names_somebody(self, nexus, name):
        assert not allowed(rules.can_name(name, nexus.roles["backend_worker"], nexus))

    def test_refuses_another_roles(self, nexus):
        policy = replace(nexus, names={})
        assert not allowed(rules.can_name("qa_worker", nexus.roles["backend_worker"], policy))

    @pytest.mark.parametrize(
        ("name", "fine"),
        [
            ("backend", True),
            ("worker", True),
            ("leader", True),
            ("buy now", False),
            ("lead", False),
        ],
    )
    def test_in_a_group_is_a_part_of_the_handle(self, name, fine):
        """Spec: contracts 58."""
        assert allowed(rules.can_name_in_group(name, "backend_worker")) is fine

    @pytest.mark.parametrize(
        ("name", "fine"),
        [("designer", True), ("board", False), ("worker", False), ("ceo", False), ("pm", False)],
    )
    def test_of_a_kind_is_one_that_nothing_else_has(self, nexus, name, fine):
        assert allowed(rules.can_name_kind(name, nexus)) is fine


class TestPlace:
    @pytest.mark.parametrize(
        ("names", "fine"),
        [([], True), (["it_manager"], True), (["it_manager", "hr_manager"], False)],
    )
    def test_beside_a_manager_is_never_ones_own(self, nexus, names, fine):
        """Spec: organisation 33."""
        assert allowed(rules.can_make_co_managers(nexus.agents["hr_manager"], names)) is fine

    @pytest.mark.parametrize(("added", "fine"), [([], True), (["summarise"], False)])
    def test_is_described_without_a_right(self, added, fine):
        """Spec: organisation 35."""
        assert allowed(rules.can_describe(added)) is fine


class TestSkills:
    KNOWN = {
        "write_file": CatalogueEntry(Source.ROLE, CODING),
        "read_inbox": CatalogueEntry(Source.BUILTIN, BOTH),
        "case_decide": CatalogueEntry(Source.OFFICE, BOTH),
        "summarise": CatalogueEntry(Source.SKILL, BOTH),
    }

    @pytest.mark.parametrize(
        ("skills", "fine"),
        [
            ([], True), (["summarise"], True), (["unknown-skill"], True), (["write_file"], False),
            (["read_inbox"], False), (["case_decide"], False), (["summarise", "write_file"], False),
        ],
    )  # fmt: skip
    def test_are_never_a_way_around_the_matrix(self, skills, fine):
        assert allowed(rules.can_give_skills(skills, self.KNOWN)) is fine


class TestTighten:
    @pytest.mark.parametrize("target", AGENTS)
    @pytest.mark.parametrize("who", ["it_manager", "product_manager"])
    def test_is_for_ones_own_workers(self, nexus, who, target):
        own = {
            "it_manager": {"backend_worker", "frontend_worker", "devops_worker", "qa_worker"},
            "product_manager": {"research_worker", "frontend_worker"},
        }[who]
        decision = rules.can_restrict_tools(nexus.agents[who], nexus.agents[target])
        assert allowed(decision) is (target in own)

    def test_is_not_for_oneself(self, nexus):
        odd = replace(nexus.agents["it_manager"], managers=("it_manager",))
        assert not allowed(rules.can_restrict_tools(odd, odd))

    @pytest.mark.parametrize(
        ("modes", "tool_modes", "held", "fine"),
        [
            (frozenset(), BOTH, None, True),
            (CODING, BOTH, None, True),
            (BOTH, BOTH, None, True),
            (BOTH, CODING, None, False),
            (CODING, BOTH, frozenset(), False),
            (frozenset(), BOTH, frozenset(), True),
            (CODING, BOTH, CODING, True),
            (BOTH, BOTH, CODING, False),
            (CODING, frozenset(), None, False),
        ],
    )
    def test_leaves_fewer_modes_never_more(self, modes, tool_modes, held, fine):
        decision = rules.can_restrict_to(
            "probe", modes, CatalogueEntry(Source.ROLE, tool_modes), held
        )
        assert allowed(decision) is fine
        if isinstance(decision, Deny):
            assert decision.code is Code.INVALID_PARAMS

    def test_never_touches_what_is_built_in_or_unknown(self):
        assert not allowed(
            rules.can_restrict_to("x", frozenset(), CatalogueEntry(Source.BUILTIN, BOTH), None)
        )
        assert not allowed(rules.can_restrict_to("x", frozenset(), None, None))


class TestRestore:
    @pytest.mark.parametrize(
        ("set_by", "fine"),
        [
            ("agent:it_manager", True), ("agent:backend_worker", True), ("agent:ceo", False),
            ("agent:product_manager", False), ("human:it_manager", False), ("human:alice", False),
            ("human:hr_manager", False), ("", False),
        ],
    )  # fmt: skip
    def test_is_for_who_tightened_and_its_managers(self, nexus, set_by, fine):
        """The product manager co-manages the frontend worker."""
        assert allowed(self.asked(nexus, set_by)) is fine

    def test_is_for_who_manages_now_after_who_tightened_left(self, nexus):
        """Spec: tools 15."""
        assert allowed(self.asked(nexus, "agent:hr_manager"))
        assert not allowed(self.asked(nexus, "agent:product_manager"))
        assert allowed(self.asked(nexus, "agent:product_manager", target="backend_worker"))

    @pytest.mark.parametrize(
        ("between", "fine"), [("backend_worker", True), ("research_worker", False)]
    )
    def test_is_for_who_manages_who_tightened(self, nexus, between, fine):
        below = replace(nexus.agents["frontend_worker"], managers=(between,))
        policy = replace(nexus, agents={**nexus.agents, "frontend_worker": below})
        decision = self.asked(policy, f"agent:{between}")
        assert allowed(decision) is fine
        if not fine:  # that the manager may not write to
            assert decision.next_action == "ask ceo"

    def asked(self, nexus, set_by, target="frontend_worker"):
        who, target = nexus.agents["it_manager"], nexus.agents[target]
        return rules.can_change_restriction(who, target, set_by, nexus)

    @pytest.mark.parametrize(
        ("set_by", "asked"),
        [
            ("human:alice", "ceo"), ("human:hr_manager", "ceo"), ("agent:ceo", "ceo"),
            ("agent:product_manager", "product_manager"),
        ],
    )  # fmt: skip
    def test_of_another_sends_the_manager_to_an_agent_that_it_reaches(self, nexus, set_by, asked):
        assert self.asked(nexus, set_by).next_action == f"ask {asked}"

    def test_of_another_sends_the_manager_to_nobody_who_is_deactivated(self, nexus):
        gone = replace(nexus.agents["product_manager"], active=False)
        policy = replace(nexus, agents={**nexus.agents, "product_manager": gone})
        assert self.asked(policy, "agent:product_manager").next_action == "ask ceo"


class TestTheLineOfAContract:
    """Spec: contracts 51, contracts 55."""

    @pytest.mark.parametrize(
        ("role", "old_role", "is_named"),
        [
            ("backend_worker", None, False), ("qa_worker", None, True), ("it_manager", None, True),
            ("backend_worker", "frontend_worker", True), ("qa_worker", "qa_worker", False),
        ],
    )  # fmt: skip
    def test_names_the_role_of_who_changes_it_leads_or_judges(
        self, nexus, role, old_role, is_named
    ):
        old = None if old_role is None else nexus.agents[old_role]
        given = (OrgAct.MOVE, "someone", nexus.roles[role], old)
        assert rules.line_of(*given, superior="it_manager").is_role_named is is_named

    def test_names_the_role_of_who_is_hired_as_more_than_a_worker(self, nexus):
        manager = replace(nexus.roles["it_manager"], tools=frozenset())
        line = rules.line_of(OrgAct.HIRE, "someone", manager, None, superior="ceo")
        assert (line.role, line.is_role_named) == ("it_manager", True)

    @pytest.mark.parametrize(
        ("superior", "co_managers", "is_named", "new"),
        [
            ("it_manager", ["product_manager"], False, set()),
            ("ceo", ["product_manager", "it_manager"], True, {"it_manager"}),
        ],
    )
    def test_names_the_superior_and_the_co_managers_that_are_new(
        self, nexus, superior, co_managers, is_named, new
    ):
        old = nexus.agents["frontend_worker"]
        line = rules.line_of(
            OrgAct.MOVE, old.handle, nexus.roles[old.role], old,
            superior=superior, co_managers=co_managers,
        )  # fmt: skip
        assert (line.role, line.is_superior_named, line.co_managers) == ("", is_named, new)

    @pytest.mark.parametrize(
        ("old", "group", "is_leader", "comes_into", "leads"),
        [
            ({}, "builders", False, "builders", ""),
            ({"group": "builders"}, "builders", False, "", ""),
            ({"group": "builders"}, "builders", True, "", "builders"),
            ({"group": "builders", "is_leader": True}, "builders", True, "", ""),
            ({"group": "menders", "is_leader": True}, "builders", True, "builders", "builders"),
            (None, "builders", True, "builders", "builders"),
        ],
    )
    def test_names_the_group_that_an_agent_comes_into_or_comes_to_lead(
        self, nexus, old, group, is_leader, comes_into, leads
    ):
        before = None if old is None else replace(nexus.agents["qa_worker"], **old)
        line = rules.line_of(
            OrgAct.MOVE, "qa_worker", nexus.roles["qa_worker"], before,
            superior="it_manager", group=group, is_leader=is_leader,
        )  # fmt: skip
        assert (line.group, line.leads) == (comes_into, leads)
