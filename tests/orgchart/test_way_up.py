"""How an agent escalates: by the tool it has, in every mode, or not at all."""

from dataclasses import replace

import pytest

from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy.way_up import tool_to_escalate
from tests.oracle.org import AGENTS, BACKEND, CEO, FRONTEND, RESEARCH
from tests.oracle.reading import PACKS

POLICY = policy_of(sound_pack(PACKS / "nexus"))


def tool(handle, policy=POLICY):
    return tool_to_escalate(policy.agents[handle], policy)


@pytest.mark.parametrize("handle", AGENTS)
def test_every_agent_below_the_top_has_one(handle):
    expected = {CEO: "", FRONTEND: "send_mail", RESEARCH: "send_mail"}
    assert tool(handle) == expected.get(handle, "escalate")


@pytest.mark.parametrize("modes", [set(), {ToolMode.CODING}, set(ToolMode)])
@pytest.mark.parametrize("scope", ["organisation", "role:backend_worker", "agent:backend_worker"])
def test_a_restriction_of_escalate_leaves_send_mail(scope, modes):
    limited = restricted({(scope, "escalate"): frozenset(modes)})
    assert tool(BACKEND, limited) == ("escalate" if modes == set(ToolMode) else "send_mail")


def test_without_both_there_is_none():
    limited = restricted(
        {("role:backend_worker", each): frozenset() for each in ("escalate", "send_mail")}
    )
    assert tool(BACKEND, limited) == ""


def test_a_denied_tool_is_none():
    role = replace(POLICY.roles[BACKEND], denied_tools=frozenset({"escalate", "send_mail"}))
    assert tool(BACKEND, replace(POLICY, roles={**POLICY.roles, BACKEND: role})) == ""


def test_a_superior_that_is_no_contact_is_not_reached():
    moved = replace(POLICY.agents[BACKEND], managers=("hr_manager",), reports_to="hr_manager")
    assert tool(BACKEND, replace(POLICY, agents={**POLICY.agents, BACKEND: moved})) == ""


def restricted(left):
    return replace(POLICY, tool_restrictions=left)
