"""The caller: the agent that a key proves, with its session and the policy of this moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.actions import Action
from core.events import Event
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.vocabulary import ToolMode
from toolbox.rules import Holder


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as its calls see it: effective mode, and the contract that opened it if any."""

    id: str
    mode: ToolMode
    contract: str = ""
    standing: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, from the key alone; immutable for the length of one call.

    `tool`, `args_digest` and `request_id` are those of the call, for the ledger.
    """

    agent: Agent
    policy: Policy
    session: SessionView
    request_id: str = ""
    tool: str = ""
    args_digest: str = ""
    frame_tools: frozenset[str] | None = None
    frame_id: int | None = None

    @property
    def role(self) -> Role:
        """The agent's role under this policy."""
        return self.policy.roles[self.agent.role]

    @property
    def handle(self) -> str:
        """The agent's handle."""
        return self.agent.handle

    @property
    def actor(self) -> str:
        """What the ledger names."""
        return f"agent:{self.agent.handle}"

    @property
    def organisation_id(self) -> int:
        """The agent's organisation; nothing crosses it."""
        return self.policy.organisation_id

    @property
    def holder(self) -> Holder:
        """The caller as the gates see it."""
        return Holder(self.agent, self.policy, self.session.mode, self.frame_tools)

    def event(self, action: Action, *, at: datetime, subject: str = "", **fields: Any) -> Event:
        """An event of this call, ready for the ledger."""
        return Event(
            action=action,
            actor=self.actor,
            at=at,
            organisation_id=self.policy.organisation_id,
            tool=self.tool,
            subject=subject,
            policy_version=self.policy.version,
            args_digest=self.args_digest,
            request_id=self.request_id,
            session_id=self.session.id,
            **fields,
        )
