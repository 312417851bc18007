"""The caller: the agent that a key belongs to, with its session and the current policy."""

from __future__ import annotations

from dataclasses import dataclass

from core.events import EventFields
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.vocabulary import ToolMode
from toolbox.rules import Holder


@dataclass(frozen=True, slots=True)
class CallerSession:
    """The session of a call: its effective mode, and the contract that opened the mode, if any."""

    id: str
    mode: ToolMode
    contract: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The agent that calls, known from the key alone; immutable during one call.

    `tool`, `args_digest` and `request_id` are those of the call, for the ledger.
    """

    agent: Agent
    policy: Policy
    session: CallerSession
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
        """The name in the ledger."""
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
