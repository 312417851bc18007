"""Tools inside frames: every role, mode and frame against the specified table."""

import json
from dataclasses import replace

import pytest

from core.decision import Allow, Code
from orgchart.compiling import compile_policy
from orgchart.policy.vocabulary import ToolMode
from tests.oracle import tools as oracle
from toolbox.faces.exports import listing
from toolbox.frames.rules import ALWAYS, narrowed
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, can_use

ROLES = sorted(oracle.BOUND)


@pytest.fixture
def holders(nexus):
    """One holder for each role, as an agent of the loaded company."""
    policy = compile_policy(nexus.organisation.id)
    agents = {agent.role: agent for agent in policy.agents.values() if agent.active}
    return {
        role: Holder(agents[role], policy, ToolMode.CHAT_SAFE) for role in ROLES if role in agents
    }


def names(holder: Holder) -> set[str]:
    return {tool["name"] for tool in listing(holder)}


class TestEveryRoleModeAndFrame:
    def test_is_the_oracles_table_cut_by_the_frame(self, holders):
        assert set(holders) == set(ROLES)
        everything = [tool.name for tool in REGISTRY.all()]
        frames = [None, frozenset(everything), frozenset()]
        frames += [frozenset({name}) for name in everything]
        for role, holder in holders.items():
            for mode in ToolMode:
                full = oracle.visible(role, mode.value)
                for frame in frames:
                    allowed = None if frame is None else frame | ALWAYS
                    seen = names(replace(holder, mode=mode, frame_tools=allowed))
                    inside = oracle.visible(role, mode.value, in_frame=True)
                    assert seen == (full if allowed is None else inside & allowed), (role, mode)

    def test_never_grows_down_a_stack(self, holders):
        everything = sorted(tool.name for tool in REGISTRY.all())
        below = everything[::2]
        above = narrowed(everything[::3], below)
        for holder in holders.values():
            for mode in ToolMode:
                outer = names(replace(holder, mode=mode, frame_tools=ALWAYS.union(below)))
                inner = names(replace(holder, mode=mode, frame_tools=ALWAYS.union(above)))
                assert inner <= outer

    def test_refuses_what_the_frame_lacks_by_the_frames_rule(self, holders):
        for role, holder in holders.items():
            for name in oracle.visible(role, "chat_safe", in_frame=True) - ALWAYS:
                decision = can_use(REGISTRY.get(name), name, replace(holder, frame_tools=ALWAYS))
                assert not isinstance(decision, Allow)
                assert decision.code is Code.TOOL_DENIED
                assert decision.rule == "allowed_tools of the frame"


class TestSchemas:
    @pytest.mark.parametrize(
        "name",
        ["delegate_to", "next_frame", "return_result", "use_skill", "memory_append",
         "memory_search", "read_memory", "save_artifact"],
    )  # fmt: skip
    def test_close_their_objects_and_describe_themselves(self, name):
        tool = REGISTRY.get(name)
        assert tool.input_schema["additionalProperties"] is False
        assert len(tool.description) > 40
        json.dumps(tool.input_schema)
