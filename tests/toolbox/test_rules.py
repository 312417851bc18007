"""The gates: every combination of what a holder may have, and one answer for each."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.decision import Allow, Code
from core.params import Params
from orgchart.catalogue import Source
from orgchart.pauses.rules import PauseFacts
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, MailTypeRule, Role, ToolRestriction
from orgchart.policy.vocabulary import Kind, Office, ToolGroup, ToolMode
from toolbox.registry import ANY_MODE, CODING_ONLY, REGISTRY, Registry, Tool
from toolbox.rules import Holder, can_use, effective_tools

CHAT, CODING = ToolMode.CHAT_SAFE, ToolMode.CODING


def a_tool(name="probe", **fields):
    fields = {"source": Source.ROLE, "allowed_modes": ANY_MODE, **fields}
    return Tool(name=name, description="", params=Params, function=lambda *_: {}, **fields)


def a_holder(
    *,
    bound=(),
    denied=(),
    skills=(),
    offices=(),
    overrides=(),
    mode=CHAT,
    frame=None,
    enabled=frozenset({CHAT, CODING}),
    superior="board",
    reaches_superior=True,
    to_superior=("escalation",),
    by_contract=False,
    to_board=(),
):
    role = Role(
        name="r",
        title="R",
        level=2,
        kind=Kind.MANAGER,
        tools=frozenset(bound),
        denied_tools=frozenset(denied),
        offices=frozenset(offices),
    )
    agent = Agent(
        id=1, handle="a", role="r", title="A", managers=(superior,), skills=frozenset(skills)
    )
    contacts = [ContactRule("r", "board", frozenset(to_board))] if to_board else []
    above = []
    if superior != "board":
        above = [Agent(id=2, handle=superior, role="top", title="B", managers=("board",))]
        above_rule = ContactRule("r", "top", frozenset(to_superior), needs_contract=by_contract)
        contacts += [above_rule] * reaches_superior
    policy = build_policy(
        organisation_id=1,
        organisation="o",
        version=1,
        roles=[role, replace(role, name="top", level=1, kind=Kind.EXECUTIVE)],
        agents=[agent, *above],
        groups=[],
        mail_types=[
            MailTypeRule("report", None),
            MailTypeRule("verdict", None, ("judge",)),
            MailTypeRule("escalation", None),
        ],
        contacts=contacts,
        aliases={},
        settings={},
        enabled_modes=enabled,
        tool_restrictions=list(overrides),
    )
    return Holder(agent, policy, mode, None if frame is None else frozenset(frame))


def answer(tool, holder):
    decision = can_use(tool, "probe", holder)
    return "ALLOW" if isinstance(decision, Allow) else decision.code


class TestCanUse:
    def test_answers_the_whole_space_as_the_formula_says(self):
        spaces = {
            "source": list(Source),
            "bound": [False, True],
            "skilled": [False, True],
            "officed": [False, True],
            "denied": [False, True],
            "modes": [frozenset(), ANY_MODE, CODING_ONLY],
            "override": [None, frozenset(), frozenset({CHAT}), frozenset({CODING})],
            "frame": [None, False, True],
            "mode": [CHAT, CODING],
        }
        seen = 0
        for values in itertools.product(*spaces.values()):
            case = dict(zip(spaces, values, strict=True))
            tool = a_tool(
                source=case["source"],
                allowed_modes=case["modes"],
                offices=frozenset({Office.ANALYST}),
            )
            holder = a_holder(
                bound=["probe"] * case["bound"],
                skills=["probe"] * case["skilled"],
                offices=[Office.ANALYST] * case["officed"],
                denied=["probe"] * case["denied"],
                overrides=[]
                if case["override"] is None
                else [ToolRestriction("role:r", "probe", case["override"])],
                mode=case["mode"],
                frame=None if case["frame"] is None else (["probe"] if case["frame"] else []),
            )
            assert answer(tool, holder) == self.expected(case), case
            seen += 1
        assert seen == 4 * 2**4 * 3 * 4 * 3 * 2

    def expected(self, case):
        """Spec: tools 9, written a second time by hand."""
        builtin = case["source"] is Source.BUILTIN
        if builtin:
            case = {**case, "denied": False, "override": None}
        if case["denied"]:
            return Code.TOOL_DENIED
        has = {
            Source.BUILTIN: True,
            Source.SKILL: case["skilled"],
            Source.OFFICE: case["officed"],
            Source.ROLE: case["bound"] or case["skilled"],
        }[case["source"]]
        if not has:
            return Code.TOOL_NOT_BOUND
        if case["override"] == frozenset() or case["frame"] is False:
            return Code.TOOL_DENIED
        left = case["modes"] if case["override"] is None else case["modes"] & case["override"]
        return "ALLOW" if case["mode"] in left else Code.MODE_DENIED

    def test_keeps_built_in_tools_whatever_a_pack_denies(self):
        none = [ToolRestriction("agent:a", "probe", frozenset())]
        builtin = a_tool(source=Source.BUILTIN)
        assert answer(builtin, a_holder(denied=["probe"], overrides=none)) == "ALLOW"
        assert answer(a_tool(), a_holder(bound=["probe"], denied=["probe"])) == Code.TOOL_DENIED

    def test_leaves_the_way_out_of_every_frame(self):
        way_out = REGISTRY.get("return_result")
        holder = replace(a_holder(denied=["return_result"], frame=[]), in_frame=True)
        assert isinstance(can_use(way_out, "return_result", holder), Allow)

    def test_calls_an_unregistered_tool_unknown(self):
        assert answer(None, a_holder(bound=["probe"])) == Code.UNKNOWN_TOOL

    def test_intersects_overrides_of_organisation_role_and_agent(self):
        overrides = [
            ToolRestriction("organisation", "probe", frozenset({CHAT, CODING})),
            ToolRestriction("role:r", "probe", frozenset({CODING})),
            ToolRestriction("agent:a", "probe", frozenset({CHAT})),
        ]
        holder = a_holder(bound=["probe"], overrides=overrides)
        assert answer(a_tool(), holder) == Code.TOOL_DENIED

    def test_never_gains_a_mode_from_an_override(self):
        holder = a_holder(
            bound=["probe"],
            overrides=[ToolRestriction("role:r", "probe", frozenset({CHAT, CODING}))],
        )
        assert answer(a_tool(allowed_modes=CODING_ONLY), holder) == Code.MODE_DENIED

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"superior": "b"}, ""),
            ({"superior": "b", "bound": ["escalate"]}, ", or ask b with escalate"),
            ({"superior": "b", "bound": ["escalate"], "reaches_superior": False}, ""),
            ({"superior": "b", "bound": ["send_mail"]}, ", or ask b with send_mail, as escalation"),
            ({"superior": "b", "bound": ["send_mail"], "to_superior": ["report"]},
             ", or ask b with send_mail, as report"),
            ({"superior": "b", "bound": ["send_mail"], "to_superior": []}, ""),
            ({"superior": "b", "bound": ["send_mail"], "by_contract": True}, ""),
            ({}, ""),
            ({"bound": ["write_note"]}, ", or tell the Board with write_note, for_board true"),
            ({"bound": ["write_note"], "denied": ["write_note"]}, ""),
            ({"bound": ["write_note"], "frame": ["probe"]},
             ", or leave your frame: return_result, also without frame_id"),
            ({"bound": ["write_note"],
              "overrides": [ToolRestriction("role:r", "write_note", frozenset())]}, ""),
            ({"bound": ["send_mail"], "to_board": ["report"]},
             ", or ask board with send_mail, as report"),
            ({"bound": ["send_mail"], "to_board": ["verdict"]}, ""),
            ({"bound": ["send_mail"]}, ""),
            ({"to_board": ["report"]}, ""),
        ],
    )  # fmt: skip
    def test_points_only_to_who_can_be_asked(self, fields, said):
        decision = can_use(a_tool(), "probe", a_holder(**fields))
        assert decision.next_action == f"use one of the tools that are listed for you{said}"

    def test_ignores_the_group(self):
        for group in ToolGroup:
            assert (
                answer(a_tool(group=group, allowed_modes=frozenset()), a_holder(bound=["probe"]))
                == Code.MODE_DENIED
            )

    def test_words_the_denial_as_specified(self):
        decision = can_use(
            a_tool("read_file", allowed_modes=CODING_ONLY),
            "read_file",
            a_holder(bound=["read_file"]),
        )
        assert decision.message == "read_file is not allowed in chat_safe mode"

    def test_names_no_mode_that_the_organisation_does_not_enable(self):
        holder = a_holder(bound=["probe"], enabled=frozenset({CHAT}))
        decision = can_use(a_tool(allowed_modes=CODING_ONLY), "probe", holder)
        assert decision.next_action == "no session of o can use it; go on with another tool"

    def test_says_how_another_mode_is_reached(self):
        tool = a_tool(allowed_modes=CODING_ONLY)
        decision = can_use(tool, "probe", a_holder(bound=["probe", "write_note"]))
        assert decision.next_action == (
            "this session is in chat_safe mode and the tool needs coding: "
            "accept a contract issued with that mode (list_contracts shows yours), "
            "or tell the Board with write_note, for_board true"
        )

    def test_names_no_contract_to_a_frame_that_cannot_accept_one(self):
        tool = a_tool(allowed_modes=CODING_ONLY)
        decision = can_use(tool, "probe", a_holder(bound=["probe"], frame=["probe"]))
        assert decision.next_action == (
            "this session is in chat_safe mode and the tool needs coding: use one of the tools "
            "that are listed for you, or leave your frame: return_result, also without frame_id"
        )

    def test_says_why_a_bound_tool_is_not_available(self):
        tool = a_tool(unusable=lambda _: "you manage no agent")
        decision = can_use(tool, "probe", a_holder(bound=["probe"]))
        assert decision.code is Code.TOOL_NOT_BOUND
        assert decision.message == "probe is not available: you manage no agent"
        usable = a_tool(unusable=lambda _: "")
        assert answer(usable, a_holder(bound=["probe"])) == "ALLOW"


class TestAFrame:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, False),
            ({"in_frame": True}, True),
            ({"frame_tools": frozenset()}, True),
            ({"in_frame": True, "frame_tools": frozenset({"probe"})}, True),
        ],
    )
    def test_is_one_with_or_without_tools_of_its_own(self, fields, expected):
        assert replace(a_holder(), **fields).is_in_frame is expected


class TestEffectiveTools:
    def test_lists_exactly_what_would_run(self):
        tools = [a_tool("one"), a_tool("two", allowed_modes=CODING_ONLY), a_tool("three")]
        holder = a_holder(bound=["one", "two"])
        assert [t.name for t in effective_tools(tools, holder)] == ["one"]


class TestRegistry:
    def test_defaults_are_closed(self):
        plain = Tool(name="probe", description="", params=Params, function=lambda *_: {})
        assert plain.allowed_modes == frozenset()
        assert plain.group is ToolGroup.CODE
        holder = a_holder(bound=["probe"])
        for mode in ToolMode:
            in_mode = Holder(holder.agent, holder.policy, mode)
            assert can_use(plain, "probe", in_mode).code == Code.MODE_DENIED

    def test_warns_of_a_tool_without_modes(self, capsys):
        import structlog

        with structlog.testing.capture_logs() as logs:
            Registry().register(a_tool("bare", allowed_modes=frozenset()))
        assert [entry["event"] for entry in logs] == ["tool_registered_with_default_modes"]

    def test_refuses_a_name_twice(self):
        registry = Registry()
        registry.register(a_tool("twice"))
        with pytest.raises(ValueError, match="twice"):
            registry.register(a_tool("twice"))


class TestAPausedHolder:
    """Spec: modes 27."""

    def test_is_told_of_its_pause_before_anything_else(self):
        pause = PauseFacts("Audit.", datetime(2026, 11, 25, tzinfo=UTC), False, True)
        builtin = a_tool(source=Source.BUILTIN)
        for holder in (a_holder(bound=["probe"]), a_holder(denied=["probe"]), a_holder()):
            paused = replace(holder, pause=pause)
            assert {answer(tool, paused) for tool in (None, builtin, a_tool())} == {
                Code.AGENT_PAUSED
            }
            assert effective_tools([builtin, a_tool()], paused) == []
