"""A next step that its caller cannot take is replaced by one that it can."""

from dataclasses import replace

import pytest

from core.decision import Code, deny
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.vocabulary import ToolMode
from tests.next_steps import unusable_in
from tests.oracle.org import AGENTS, BACKEND, CEO, HR, IT
from tests.oracle.reading import PACKS
from toolbox.caller import Caller, CallerSession, Face
from toolbox.registry import REGISTRY
from toolbox.usable_steps import with_usable_step

POLICY = policy_of(sound_pack(PACKS / "nexus"))


def caller(handle, **more):
    session = CallerSession("", ToolMode.CHAT_SAFE)
    return Caller(agent=POLICY.agents[handle], policy=POLICY, session=session, **more)


def step(text, who):
    return with_usable_step(deny(Code.NOT_FOUND, "no", text), who).next_action


class TestAStep:
    @pytest.mark.parametrize(
        ("text", "handle"),
        [
            ("call read_inbox first", BACKEND),
            ("list_agents shows the agents", HR),
            ("correct it and repeat", CEO),
            ("open one with POST /api/v1/sessions", IT),
        ],
    )
    def test_that_can_be_taken_stays(self, text, handle):
        assert step(text, caller(handle)) == text

    @pytest.mark.parametrize(
        ("text", "handle", "instead"),
        [
            ("list_agents shows the agents", IT, "ask ceo with escalate"),
            ("read_file it first", BACKEND, "ask it_manager with escalate"),
            ("call escalate", CEO, "tell the Board with write_note"),
            ("", BACKEND, "ask it_manager with escalate"),
        ],
    )
    def test_with_a_tool_of_others_or_of_another_mode_or_of_none_is_replaced(
        self, text, handle, instead
    ):
        assert instead in step(text, caller(handle))

    @pytest.mark.parametrize("text", ["ask ceo for one", "tell your superior what you need"])
    def test_that_asks_a_superior_out_of_reach_is_replaced(self, text):
        """Spec: escalation 7."""
        left = replace(POLICY.agents[BACKEND], managers=(CEO,))
        assert left.orphaned
        who = caller(BACKEND)
        assert step("ask it_manager for one", who) == "ask it_manager for one"
        said = step(text, replace(who, agent=left))
        assert said == "use one of the tools that are listed for you"

    def test_outside_of_the_frame_is_replaced_by_the_way_out(self):
        inside = caller(BACKEND, frame_id=1, frame_tools=frozenset({"read_inbox"}))
        assert step("call read_inbox", inside) == "call read_inbox"
        assert "return_result" in step("call list_contracts", inside)

    def test_with_an_address_of_rest_is_replaced_over_mcp(self):
        over_mcp = caller(IT, face=Face.MCP)
        assert "/api/" not in step("open one with POST /api/v1/sessions", over_mcp)

    @pytest.mark.parametrize("face", Face)
    @pytest.mark.parametrize("handle", AGENTS)
    def test_in_place_of_any_can_be_taken(self, handle, face):
        """Whatever tool a refusal names, and wherever its caller works."""
        for tools in (None, frozenset(), frozenset({"read_inbox", "send_mail"})):
            frame_id = None if tools is None else 1
            who = replace(caller(handle, face=face), frame_tools=tools, frame_id=frame_id)
            for tool in REGISTRY.all():
                said = step(f"use {tool.name}, or GET /api/v1/tools", who)
                assert not unusable_in(said, who.holder, face), (tool.name, said)
