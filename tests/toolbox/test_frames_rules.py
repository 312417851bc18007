"""Who may delegate to whom: every ordered pair, against Spec: groups 4."""

from dataclasses import replace

import pytest

from core.decision import Allow, Code, Deny
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, Group, Policy
from orgchart.policy.vocabulary import ToolMode
from tests.oracle import delegation
from toolbox.frames.rules import (
    MAX_DEPTH,
    MOST_WAITING,
    Stack,
    can_cancel,
    can_carry_result,
    can_delegate,
    can_enter_skill,
    can_open,
    can_return,
    can_wait_for,
    delegates_of,
    delegators_of,
    narrowed,
)
from toolbox.frames.vocabulary import UNENDED, FrameState

PAIRS = [(a, b) for a in delegation.ADDRESSES for b in delegation.ADDRESSES]


def agent(number: int, address: str) -> Agent:
    group, _, name = address.partition(".")
    return Agent(
        id=number,
        handle=delegation.HANDLES.get(address, address),
        role="any",
        title=address,
        group=group if name else "",
        name=name,
        is_leader=name == "leader",
    )


def policy_of(*, member_delegation: bool = False, extra: tuple[Agent, ...] = ()) -> Policy:
    agents = [agent(n, address) for n, address in enumerate(delegation.ADDRESSES)]
    return build_policy(
        organisation_id=1,
        organisation="soloqueue",
        version=1,
        roles=[],
        agents=[*agents, *extra],
        groups=[
            Group("investment", "Investment", member_delegation=member_delegation),
            Group("coding", "Coding", member_delegation=member_delegation),
        ],
        mail_types=[],
        contacts=[],
        aliases=delegation.ALIASES | {"coding.dev": "coding_developer"},
        settings={},
        enabled_modes=frozenset({ToolMode.CHAT_SAFE}),
    )


def decide(policy: Policy, source: str, target: str) -> Allow | Deny:
    return can_delegate(policy.resolve(source), policy.resolve(target), target, policy)


class TestCanDelegate:
    @pytest.mark.parametrize(("source", "target"), PAIRS)
    def test_is_the_specified_table(self, source, target):
        decision = decide(policy_of(), source, target)
        assert isinstance(decision, Allow) == delegation.expected(source, target)
        if isinstance(decision, Deny):
            assert decision.code is Code.CONTACT_DENIED
            assert decision.next_action
            assert decision.rule

    @pytest.mark.parametrize(("source", "target"), PAIRS)
    def test_opens_members_to_each_other_only_where_the_group_says_so(self, source, target):
        decision = decide(policy_of(member_delegation=True), source, target)
        allowed = delegation.ALLOWED | delegation.WITH_MEMBER_DELEGATION
        assert isinstance(decision, Allow) == ((source, target) in allowed)

    def test_takes_handle_address_and_alias_for_one_agent(self):
        policy = policy_of()
        for name in ("coding_developer", "coding.developer", "coding.dev"):
            assert isinstance(decide(policy, "coding.leader", name), Allow)

    @pytest.mark.parametrize(
        "name",
        ["nobody", "", "Coding.developer", "coding.developer ", "coding", "coding.", "board", "*"],
    )
    def test_knows_no_other_spelling(self, name):
        decision = decide(policy_of(), "coding.leader", name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.RECIPIENT_UNKNOWN

    def test_refuses_who_is_deactivated(self):
        policy = policy_of()
        gone = replace(policy.resolve("coding.developer"), active=False)
        decision = can_delegate(policy.resolve("coding.leader"), gone, "x", policy)
        assert decision.code is Code.RECIPIENT_INACTIVE

    def test_does_not_say_who_is_deactivated_outside_its_reach(self):
        policy = policy_of()
        source = policy.resolve("coding.developer")
        for target in delegation.ADDRESSES:
            agent_ = policy.resolve(target)
            if (source.address, target) not in delegation.ALLOWED and agent_ != source:
                gone = replace(agent_, active=False)
                said = [can_delegate(source, each, target, policy) for each in (agent_, gone)]
                assert said[0] == said[1]
                assert said[0].code is Code.CONTACT_DENIED

    @pytest.mark.parametrize("member_delegation", [False, True])
    @pytest.mark.parametrize("gone", [None, *delegation.ADDRESSES])
    def test_is_listed_in_both_directions(self, member_delegation, gone):
        """Who is deactivated takes no new delegation; what it gave comes back."""
        policy = policy_of(member_delegation=member_delegation)
        allowed = set(delegation.ALLOWED)
        allowed |= delegation.WITH_MEMBER_DELEGATION if member_delegation else set()
        if gone:
            left = policy.resolve(gone)
            policy.agents[left.handle] = replace(left, active=False)
        for one in delegation.ADDRESSES:
            takers = sorted(other for other in delegation.ADDRESSES if (one, other) in allowed)
            givers = [
                policy.resolve(other).id
                for other in delegation.ADDRESSES
                if (other, one) in allowed
            ]
            listed = delegates_of(policy.resolve(one), policy)
            assert listed == tuple(taker for taker in takers if taker != gone)
            assert sorted(delegators_of(policy.resolve(one), policy)) == sorted(givers)

    def test_gives_agents_without_a_group_nobody(self):
        alone = (replace(agent(90, "loner"), is_leader=True), agent(91, "other"))
        policy = policy_of(member_delegation=True, extra=alone)
        for source, target in [
            ("loner", "other"),
            ("loner", "coding.leader"),
            ("coding.leader", "loner"),
        ]:
            assert decide(policy, source, target).code is Code.CONTACT_DENIED
        assert delegates_of(policy.resolve("loner"), policy) == ()

    def test_names_only_whom_the_caller_can_delegate_to(self):
        policy = policy_of()
        for source in delegation.ADDRESSES:
            named = delegates_of(policy.resolve(source), policy)
            assert set(named) == {t for s, t in delegation.ALLOWED if s == source}

    @pytest.mark.parametrize(
        ("source", "target", "said"),
        [
            ("coding.leader", "coding.leader", "an agent does not delegate to itself"),
            ("loner", "coding.leader", "loner is in no group"),
            ("coding.leader", "loner", "loner is in no group"),
            ("coding.developer", "coding.leader", "members return their results"),
            ("coding.developer", "investment.leader", "only leaders delegate across groups"),
        ],
    )
    def test_says_why_not(self, source, target, said):
        policy = policy_of(extra=(agent(90, "loner"),))
        assert said in decide(policy, source, target).message

    def test_says_to_whom_instead(self):
        steps = {
            source: decide(policy_of(), source, source).next_action
            for source in ("coding.leader", "coding.developer")
        }
        named = ", ".join(delegates_of(policy_of().resolve("coding.leader"), policy_of()))
        assert steps == {
            "coding.leader": f"delegate to one of: {named}",
            "coding.developer": "do it yourself; inside a frame, say what is missing with "
            "return_result",
        }


class TestCanCarryResult:
    """Spec: frames 15."""

    @pytest.mark.parametrize(("source", "target"), PAIRS)
    def test_reaches_who_may_still_delegate_and_an_own_skill(self, source, target):
        policy = policy_of()
        decision = can_carry_result(policy.resolve(source), policy.resolve(target), policy)
        may = source == target or (source, target) in delegation.ALLOWED
        assert isinstance(decision, Allow) is may
        assert may or decision.code is Code.CONTACT_DENIED

    def test_reaches_nobody_where_the_opener_is_gone(self):
        policy = policy_of()
        decision = can_carry_result(None, policy.resolve("coding.developer"), policy)
        assert decision.code is Code.CONTACT_DENIED


class TestCanOpen:
    def test_refuses_a_circle(self):
        target = agent(1, "coding.leader")
        decision = can_open(target, Stack(2, frozenset({"coding_leader", "investment_leader"})))
        assert decision.code is Code.DELEGATION_CIRCLE

    @pytest.mark.parametrize("depth", range(MAX_DEPTH + 2))
    def test_ends_at_eight(self, depth):
        decision = can_open(agent(1, "coding.leader"), Stack(depth))
        assert isinstance(decision, Allow) == (depth < 8)

    @pytest.mark.parametrize("depth", range(MAX_DEPTH + 2))
    def test_skills_end_at_eight_too(self, depth):
        decision = can_enter_skill("skill__one", Stack(depth))
        assert isinstance(decision, Allow) == (depth < 8)

    def test_a_skill_never_runs_inside_itself(self):
        stack = Stack(3, skills=frozenset({"skill__one"}))
        assert can_enter_skill("skill__one", stack).code is Code.INVALID_TRANSITION
        assert isinstance(can_enter_skill("skill__two", stack), Allow)


class TestWaiting:
    @pytest.mark.parametrize("waiting", [0, MOST_WAITING - 1, MOST_WAITING, MOST_WAITING + 1])
    def test_is_for_so_many_of_one_opener(self, waiting):
        decision = can_wait_for(waiting, agent(1, "coding.leader"))
        if waiting < MOST_WAITING:
            assert isinstance(decision, Allow)
        else:
            assert (decision.code, "coding.leader" in decision.message) == (
                Code.QUOTA_EXCEEDED, True,
            )  # fmt: skip


class TestNarrowed:
    @pytest.mark.parametrize(
        ("wanted", "below", "left"),
        [
            (None, None, None),
            (None, ["b", "a"], ["a", "b"]),
            (["b", "a"], None, ["a", "b"]),
            (["a", "c"], ["a", "b"], ["a"]),
            ([], None, []),
            (["a"], [], []),
            ([], ["a"], []),
        ],
    )
    def test_never_has_more_than_the_frame_below(self, wanted, below, left):
        assert narrowed(wanted, below) == left


class TestEnding:
    @pytest.mark.parametrize("state", FrameState)
    @pytest.mark.parametrize("inside", [True, False])
    def test_is_returned_from_inside_while_it_has_not_ended(self, state, inside):
        found = can_return(7, state, "", inside=inside)
        assert isinstance(found, Allow) is (state in UNENDED and inside)
        assert state not in UNENDED or inside or "you are not in frame 7" in found.message

    @pytest.mark.parametrize(("reason", "said"), [("", ""), ("too late", ": too late")])
    def test_says_why_it_ended(self, reason, said):
        found = can_return(7, FrameState.FAILED, reason, inside=True)
        assert found.message == f"frame 7 has ended, it is failed{said}"

    @pytest.mark.parametrize("state", FrameState)
    def test_is_cancelled_while_it_has_not_ended(self, state):
        assert isinstance(can_cancel(7, state), Allow) is (state in UNENDED)
