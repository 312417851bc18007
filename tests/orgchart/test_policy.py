"""The compiled policy's questions, each a look into a dictionary."""

from dataclasses import replace

import pytest

from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, MailTypeRule, Role, ToolRestriction
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.vocabulary import BOARD, Kind, Relation, ToolMode
from tests.orgchart.world import ACME, PACKS, acme_policy, edited, write_pack

CHAT, CODING = ToolMode.CHAT_SAFE, ToolMode.CODING


@pytest.fixture
def policy(tmp_path):
    return acme_policy(tmp_path)


def rule(policy, sender, recipient):
    return policy.rule_between(policy.agents[sender], policy.agents[recipient])


class TestTheRuleOfAPair:
    @pytest.mark.parametrize(
        ("sender", "recipient", "there"),
        [
            ("boss", "lead", True),
            ("boss", "other_lead", True),
            ("lead", "boss", True),
            ("boss", "hand_one", False),
            ("hand_one", "boss", False),
            ("lead", "hand_one", True),
            ("hand_one", "lead", True),
            ("hand_one", "other_lead", True),  # its co-manager
            ("other_lead", "hand_one", True),
            ("hand_two", "other_lead", True),
            ("hand_two", "lead", False),  # somebody else's manager
            ("lead", "hand_two", False),
            ("hand_one", "hand_two", False),
            ("lead", "other_lead", False),
            ("boss", "boss", False),
            ("hand_one", "hand_one", False),
        ],
    )
    def test_is_there_only_where_one_is_written(self, policy, sender, recipient, there):
        assert (rule(policy, sender, recipient) is not None) is there

    def test_never_reaches_oneself_even_where_a_role_writes_to_its_own(self, tmp_path):
        write_pack(
            tmp_path,
            edited(
                "mail-protocol.yaml",
                ("board:", "  - {from: lead, to: lead, types: [report]}\nboard:"),
            ),
        )
        policy = policy_of(sound_pack(tmp_path))
        assert rule(policy, "lead", "other_lead") is not None
        assert rule(policy, "lead", "lead") is None

    def test_to_the_board_is_a_rule_of_its_own(self, policy):
        assert policy.rule_between(policy.agents["boss"], BOARD_PARTY).types == {"info"}
        assert policy.rule_between(policy.agents["lead"], BOARD_PARTY) is None


class TestWhatMayBeSent:
    def sendable(self, policy, sender, recipient):
        found = rule(policy, sender, recipient)
        return policy.sendable_types(policy.agents[sender], recipient, found)

    def test_is_the_ceiling_cut_by_the_rule_without_what_tools_issue(self, policy):
        assert self.sendable(policy, "boss", "lead") == {"info"}
        assert self.sendable(policy, "lead", "hand_one") == {"info", "report"}

    def test_escalates_to_the_direct_superior_only(self, policy):
        assert self.sendable(policy, "hand_one", "lead") == {"report", "escalation"}
        assert self.sendable(policy, "hand_one", "other_lead") == {"report"}

    def test_is_nothing_under_an_empty_list(self, tmp_path):
        empty = ("{from: lead, to: hand,", "{from: lead, to: hand, types: [],")
        write_pack(tmp_path, edited("mail-protocol.yaml", empty))
        policy = policy_of(sound_pack(tmp_path))
        assert rule(policy, "lead", "hand_one") is not None
        assert self.sendable(policy, "lead", "hand_one") == frozenset()

    def test_is_nothing_for_a_role_that_no_type_names(self, policy):
        assert policy.types_from("nobody") == frozenset()


class TestContacts:
    def test_list_who_is_active_and_the_board(self, policy):
        assert policy.contacts_of(policy.agents["boss"]) == ("board", "lead", "other_lead")
        assert policy.contacts_of(policy.agents["hand_two"]) == ("other_lead",)

    def test_leave_out_who_is_deactivated(self, tmp_path):
        text = ACME["agents/other_lead.yaml"] + "active: false\n"
        write_pack(
            tmp_path,
            {
                "agents/other_lead.yaml": text,
                "agents/hand_two.yaml": "role: hand\nreports_to: lead\n",
            },
        )
        policy = policy_of(sound_pack(tmp_path))
        assert policy.contacts_of(policy.agents["boss"]) == ("board", "lead")

    def test_list_workers_of_co_managers_too(self, policy):
        assert [a.handle for a in policy.workers_of(policy.agents["other_lead"])] == [
            "hand_one",
            "hand_two",
        ]


class TestNames:
    def built(self, agents, aliases):
        role = Role("r", "R", 1, Kind.EXECUTIVE, frozenset())
        return build_policy(
            organisation_id=1,
            organisation="o",
            version=1,
            roles=[role],
            agents=agents,
            groups=[],
            mail_types=[],
            contacts=[],
            aliases=aliases,
            settings={},
            enabled_modes=frozenset({CHAT}),
        )

    def test_a_handle_wins_over_an_address_and_an_address_over_an_alias(self):
        dotted = Agent(1, "g.a", "r", "")
        grouped = Agent(2, "x", "r", "", group="g", name="a")
        policy = self.built([dotted, grouped], {"g.a": "x", "x": "g.a"})
        assert policy.resolve("g.a") is dotted
        assert policy.resolve("x") is grouped

    def test_an_alias_of_nobody_resolves_to_nobody(self):
        assert self.built([], {"ghost": "gone"}).resolve("ghost") is None

    def test_every_old_name_of_the_specification_resolves(self):
        """Spec: organisation 19."""
        policy = policy_of(sound_pack(PACKS / "nexus"))
        for old, handle in (
            ("hr_lead", "hr_manager"),
            ("hr.manager", "hr_manager"),
            ("it_admin", "it_manager"),
            ("eng_manager", "it_manager"),
            ("pm", "product_manager"),
            ("qa_lead", "qa_worker"),
            ("frontend_dev", "frontend_worker"),
            ("backend_dev", "backend_worker"),
            ("devops", "devops_worker"),
        ):
            assert policy.resolve(old) is policy.agents[handle]

    def test_an_address_is_group_and_name_or_the_handle(self):
        assert Agent(1, "x", "r", "", group="g", name="a").address == "g.a"
        assert Agent(1, "x", "r", "").address == "x"

    def test_the_superior_of_the_top_is_the_board(self):
        assert Agent(1, "x", "r", "").superior == BOARD


class TestTightenings:
    def test_of_one_scope_twice_leave_what_both_leave(self, policy):
        overrides = [
            ToolRestriction("agent:boss", "t", frozenset({CODING})),
            ToolRestriction("agent:boss", "t", frozenset({CHAT, CODING})),
        ]
        built = build_policy(
            organisation_id=1,
            organisation="o",
            version=1,
            roles=list(policy.roles.values()),
            agents=list(policy.agents.values()),
            groups=[],
            mail_types=[MailTypeRule("info", None)],
            contacts=[ContactRule("boss", "lead", relation=Relation.ANY)],
            aliases={},
            settings={},
            enabled_modes=frozenset({CHAT}),
            tool_restrictions=overrides,
        )
        assert built.restricted_modes(built.agents["boss"], "t") == {CODING}
        assert built.restricted_modes(built.agents["lead"], "t") is None
        assert built.restricted_modes(built.agents["boss"], "u") is None

    def test_are_none_where_none_is_written(self, policy):
        bare = replace(policy, tool_restrictions={})
        assert bare.restricted_modes(bare.agents["lead"], "web_search") is None
        assert policy.restricted_modes(policy.agents["lead"], "web_search") == frozenset()


class TestTheChainOfCommand:
    def test_ends_at_the_board(self, policy):
        boss, lead, hand = (policy.agents[name] for name in ("boss", "lead", "hand_one"))
        assert policy.chain_above(hand) == (lead, boss)
        assert policy.superior_of(hand) is lead
        assert policy.superior_of(boss) is BOARD_PARTY
        assert policy.chain_above(boss) == ()

    def test_is_asked_of_a_pair_as_it_is_listed(self, policy):
        for other in policy.agents.values():
            above = {one.handle for one in policy.chain_above(other)}
            assert {name for name, a in policy.agents.items() if policy.commands(a, other)} == above

    def test_ends_in_a_circle(self, policy):
        boss, lead = policy.agents["boss"], policy.agents["lead"]
        circle = replace(
            policy, agents={**policy.agents, "boss": replace(boss, managers=("lead",))}
        )
        for one, other in ((boss, lead), (lead, boss)):
            assert circle.commands(one, circle.agents[other.handle])
            assert not circle.commands(one, circle.agents[one.handle])
        assert not circle.commands(policy.agents["hand_one"], lead)
