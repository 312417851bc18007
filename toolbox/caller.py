"""The caller: the agent that a key belongs to, with its session and the current policy."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.utils import timezone
from pydantic_core import to_json

from core.decision import Allow, Decision, require
from core.events import EventFields
from core.key_form import without_keys
from orgchart.models import Agent as AgentRow
from orgchart.pauses.rules import PauseFacts
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.vocabulary import ToolMode
from toolbox.rules import Holder


class Face(StrEnum):
    """The protocol that a call came through."""

    REST = "rest"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class CallerSession:
    """The session of a call: its effective mode, and the contract it works under, if any."""

    id: str
    mode: ToolMode
    contract: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time that the database said once, and what has passed since (Spec: clocks 3)."""

    said: datetime = field(default_factory=timezone.now)
    heard: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        """The time by the database's clock."""
        return self.said + timedelta(seconds=time.monotonic() - self.heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The agent that calls, known from the key alone; immutable during one call.

    `frame_id` is the frame that the agent works in with all its sessions, `frame_tools` what it
    restricts them to, `pause` what stops it. `clock` is the database's: no call uses the time of
    the machine that serves it. `tool`, `args_digest` and `request_id` are those of the call, for
    the ledger; `allowed_by` lists the rules that have allowed it so far. `key` is the digest of the
    key that proved it, empty where a person lets the agent act.
    """

    agent: Agent
    policy: Policy
    session: CallerSession
    request_id: str = ""
    tool: str = ""
    args_digest: str = ""
    args_size: int = 0
    frame_tools: frozenset[str] | None = None
    frame_id: int | None = None
    face: Face = Face.REST
    pause: PauseFacts | None = None
    key: bytes = field(default=b"", compare=False, repr=False)
    clock: Clock = field(default_factory=Clock, compare=False, repr=False)
    allowed_by: list[str] = field(default_factory=list, compare=False, repr=False)

    def calling(self, tool: str, params: Mapping[str, Any]) -> Caller:
        """This caller at the beginning of a call; the ledger keeps a digest of its arguments."""
        content = to_json(params)
        digest = hashlib.sha256(content).hexdigest()
        name, size = without_keys(tool)[:64], len(content)
        return replace(self, tool=name, args_digest=digest, args_size=size, allowed_by=[])

    def at(self, tool: str) -> Caller:
        """This caller with the name of what it calls, which may be no tool at all."""
        return replace(self, tool=without_keys(tool)[:64])

    def under(self, policy: Policy) -> Caller:
        """This caller under a newer policy, which may give its agent another place."""
        return replace(self, policy=policy, agent=policy.by_id[self.agent.id])

    def require(self, decision: Decision) -> Allow:
        """Return the Allow and note its rule, which explains the call; or raise Denied."""
        allowed = require(decision)
        self.allowed_by.append(allowed.rule)
        return allowed

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
        return Holder(
            self.agent,
            self.policy,
            self.session.mode,
            self.frame_tools,
            in_frame=self.frame_id is not None,
            pause=self.pause,
        )

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


def address_of(caller: Caller, agent_id: int) -> str:
    """An agent's address; deactivated agents are still in the policy."""
    agent = caller.policy.by_id.get(agent_id)
    return agent.address if agent else AgentRow.objects.get(id=agent_id).handle
