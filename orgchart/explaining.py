"""Questions of people about an agent's calls: what would be answered, and by which rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.decision import Code, Decision, Deny, deny
from core.hooks import Hook
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import ToolMode


@dataclass(frozen=True, slots=True, kw_only=True)
class CallQuestion:
    """A call that an agent could make; without parameters only its gate is asked about."""

    policy: Policy
    agent: Agent
    tool: str
    params: Mapping[str, Any] | None = None
    mode: ToolMode = ToolMode.CHAT_SAFE


decide_call = Hook[[CallQuestion], Decision]("decide a call as the door does, without doing it")


def ask_mail(
    policy: Policy, agent: Agent, *, mail_type: str, to: str, contract: str = ""
) -> CallQuestion:
    """Ask whether the agent may send a mail of that type, under a contract if one is named."""
    params = {"to": to, "type": mail_type, "subject": "A question", "body": ""}
    if contract:
        params["contract_ref"] = contract
    return CallQuestion(policy=policy, agent=agent, tool="send_mail", params=params)


def explain(question: CallQuestion) -> Decision:
    """What the call would be answered, with the rule that decides it."""
    policy, agent = question.policy, question.agent
    return _out_of_service(policy, agent, question.mode) or decide_call(question)[0]


def _out_of_service(policy: Policy, agent: Agent, mode: ToolMode) -> Deny | None:
    """What stops a call before any rule is asked."""
    if not agent.active:
        return deny(
            Code.UNAUTHENTICATED,
            f"{agent.handle} is deactivated; its keys do not work",
            "activate the agent first",
            rule="keys of active agents only",
        )
    if mode not in policy.enabled_modes:
        return deny(
            Code.MODE_DENIED,
            f"no session of {policy.organisation} can be in {mode}",
            "enable the mode in the organisation's settings first",
            rule="enabled_modes",
        )
    return None
