"""Questions about the policy that rooms above can answer: who may send what, who may call what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.decision import Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import ToolMode

Explainer = Callable[[Mapping[str, Any]], Decision]

EXPLAINERS: dict[str, Explainer] = {}


def explains(question: str) -> Callable[[Explainer], Explainer]:
    """Declare who answers a question (`mail`, `tool`).

    The facts are: `policy`, `agent`, and `type`, `to`, `contract` or `tool`, `mode`.
    """

    def declare(answer: Explainer) -> Explainer:
        EXPLAINERS[question] = answer
        return answer

    return declare


def explain(question: str, facts: Mapping[str, Any]) -> Decision:
    """What a call would be answered, with the rule that decides it (facts as in `explains`)."""
    stopped = _out_of_service(
        facts["policy"], facts["agent"], facts.get("mode", ToolMode.CHAT_SAFE)
    )
    return stopped or EXPLAINERS[question](facts)


def _out_of_service(policy: Policy, agent: Agent, mode: ToolMode) -> Deny | None:
    """What stops a call before any rule is asked."""
    if not agent.active:
        return deny(
            Code.UNAUTHENTICATED,
            f"{agent.handle} is deactivated: none of its keys proves it",
            "activate the agent first",
            rule="a key proves an active agent",
        )
    if mode not in policy.enabled_modes:
        return deny(
            Code.MODE_DENIED,
            f"no session of {policy.organisation} can be in {mode}",
            "enable the mode in the organisation's settings first",
            rule="enabled_modes",
        )
    return None
