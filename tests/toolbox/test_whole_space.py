"""Roles × tools × modes × stacks of frames beside the hand-written answer; nobody gains by a frame.

Pure where it can be: the shipped pack compiled without a database. Frames that agents open for
themselves and for one another are real ones.
"""

import itertools
from dataclasses import replace

import pytest
from django.utils import timezone

from core.decision import Allow
from orgchart.policy.vocabulary import ToolMode
from tests.company import load_company
from tests.oracle import delegation, org
from tests.oracle import tools as oracle
from tests.oracle.reading import compiled_nexus
from toolbox.frames import services
from toolbox.frames.rules import ALWAYS, narrowed
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, can_use, effective_tools

TOOLS = (*sorted(set(oracle.ROLE_TOOLS) | oracle.BUILTIN), "no_such_tool", "case_of_nobody")
REST = frozenset(TOOLS)


def said(tool: str, holder: Holder) -> str:
    decision = can_use(REGISTRY.get(tool), tool, holder)
    return "OK" if isinstance(decision, Allow) else decision.code.value


def kept(frames: tuple[frozenset[str], ...]) -> frozenset[str] | None:
    """What a stack leaves, as frames are pushed one upon the other."""
    left = None
    for frame in frames:
        left = narrowed(frame, left)
    return None if left is None else ALWAYS.union(left)


def stacks(tool: str):
    """No frame, and every stack of one to three in which each has the tool or lacks it."""
    has, lacks = frozenset({tool, "read_inbox"}), REST - {tool}
    yield ()
    for depth in (1, 2, 3):
        yield from itertools.product((has, lacks, frozenset()), repeat=depth)


@pytest.fixture(scope="module")
def policy():
    return compiled_nexus()


class TestTheGate:
    @pytest.mark.parametrize("mode", ["chat_safe", "coding"])
    @pytest.mark.parametrize("role", org.AGENTS)
    def test_answers_as_the_oracle_in_every_stack(self, policy, role, mode):
        holder = Holder(policy.agents[role], policy, ToolMode(mode))
        for tool in TOOLS:
            for frames in stacks(tool):
                inside = replace(holder, frame_tools=kept(frames))
                expected = oracle.answer(role, mode, tool, frames)
                assert said(tool, inside) == expected, (tool, frames)

    @pytest.mark.parametrize("mode", ["chat_safe", "coding"])
    @pytest.mark.parametrize("role", org.AGENTS)
    def test_gives_a_frame_nothing_that_its_opener_lacks(self, policy, role, mode):
        holder = Holder(policy.agents[role], policy, ToolMode(mode))
        outside = {tool.name for tool in effective_tools(REGISTRY.all(), holder)}
        assert outside == oracle.visible(role, mode)
        for wanted in (REST, frozenset({"write_file", "send_mail", "generate_contract"})):
            inside = replace(holder, frame_tools=kept((wanted,)))
            found = {tool.name for tool in effective_tools(REGISTRY.all(), inside)}
            assert found == (oracle.visible(role, mode, in_frame=True) & wanted) | ALWAYS


@pytest.fixture
def solo(db):
    return load_company("soloqueue")


def usable(caller) -> set[str]:
    return {tool.name for tool in effective_tools(REGISTRY.all(), caller.holder)}


class TestDelegatedFrames:
    """Whoever is in a frame hands on at most what that frame has."""

    NARROW = ("delegate_to", "read_memory", "next_frame")

    def take(self, company, handle):
        return company.call(handle, "next_frame").result["frame"]

    @pytest.mark.parametrize(
        ("source", "target"), sorted(delegation.ALLOWED), ids=lambda address: address
    )
    def test_have_no_tool_that_their_openers_lacked(self, solo, source, target):
        opener, taker = delegation.HANDLES[source], delegation.HANDLES[target]
        everywhere = usable(solo.caller(taker))
        services.enter_skill(
            caller=solo.caller(opener),
            name="skill__narrow",
            prompt="p",
            tools=self.NARROW,
            now=timezone.now(),
        )
        openers = usable(solo.caller(opener))
        assert openers == {*self.NARROW, *ALWAYS}
        solo.call(opener, "delegate_to", to=target, instruction="do it")
        frame = self.take(solo, taker)
        assert set(frame["allowed_tools"]) == set(self.NARROW)
        assert usable(solo.caller(taker)) == openers & everywhere
        assert solo.call(taker, "memory_append", text="x").code == "TOOL_DENIED"
        solo.call(taker, "return_result", frame_id=frame["frame_id"], result="done")
        assert usable(solo.caller(taker)) == everywhere

    def test_stay_as_narrow_through_a_chain(self, solo):
        services.enter_skill(
            caller=solo.caller("investment_leader"),
            name="skill__narrow",
            prompt="p",
            tools=self.NARROW,
            now=timezone.now(),
        )
        solo.call("investment_leader", "delegate_to", to="coding.leader", instruction="do it")
        self.take(solo, "coding_leader")
        services.enter_skill(
            caller=solo.caller("coding_leader"),
            name="skill__wide",
            prompt="p",
            tools=sorted(REST),
            now=timezone.now(),
        )
        assert usable(solo.caller("coding_leader")) == {*self.NARROW, *ALWAYS}
        solo.call("coding_leader", "delegate_to", to="coding.developer", instruction="do it")
        self.take(solo, "coding_developer")
        assert usable(solo.caller("coding_developer")) == {*self.NARROW, *ALWAYS}
