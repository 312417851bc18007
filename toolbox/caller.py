"""The caller: the agent that a key proves, with its session and the policy of this moment."""

from __future__ import annotations

from dataclasses import dataclass

from core.events import EventFields
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

    @property
    def origin(self) -> EventFields:
        """The fields that every event of this call carries."""
        return {
            "tool": self.tool,
            "policy_version": self.policy.version,
            "args_digest": self.args_digest,
            "request_id": self.request_id,
            "session_id": self.session.id,
        }
