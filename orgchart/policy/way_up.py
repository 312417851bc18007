"""How an agent escalates to its direct superior; pure."""

from __future__ import annotations

from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import ESCALATION

ESCALATE, SEND_MAIL = "escalate", "send_mail"


def tool_to_escalate(agent: Agent, policy: Policy) -> str:
    """The tool with which an agent escalates in every mode: `escalate`, else `send_mail`, else ''.

    '' is also the answer where no escalation reaches its superior (Spec: escalation 2, 4).
    """
    above = policy.agents.get(agent.superior)
    rule = policy.rule_between(agent, above) if above else None
    if above is None or rule is None or not policy.carries_up(agent, ESCALATION):
        return ""
    role = policy.roles[agent.role]
    for tool in (ESCALATE, SEND_MAIL):
        left = policy.restricted_modes(agent, tool)
        usable = tool in role.tools and tool not in role.denied_tools
        if tool == SEND_MAIL and ESCALATION not in policy.sendable_types(agent, above.handle, rule):
            continue
        if usable and (left is None or policy.enabled_modes <= left):
            return tool
    return ""
