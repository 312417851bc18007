"""The operating-system user of each agent: a number in this installation's own range."""

from __future__ import annotations

import os
from dataclasses import dataclass

from django.conf import settings

from core.decision import Code, refuse
from workspace.models import UserNumber


@dataclass(frozen=True, slots=True)
class AgentUser:
    """A Linux user and its only group, by number; it needs no entry in /etc/passwd."""

    uid: int
    gid: int


def user_of(agent_id: int) -> AgentUser | None:
    """The Linux user of an agent, which is never given to another agent.

    None where this process is not root: then every agent has the server's own user, and `workspace
    doctor` says so. Raises Denied ISOLATION_UNAVAILABLE where the range is used up.

    Spec: files 8.
    """
    if os.geteuid() != 0:
        return None
    # Not remembered: after a failover that lost its end the number may be another agent's.
    return user_numbered(UserNumber.objects.values_list("number", flat=True).get(agent_id=agent_id))


def user_numbered(number: int) -> AgentUser:
    """The user of this number, from 1. Raises Denied ISOLATION_UNAVAILABLE outside of the range."""
    numbers = settings.WORKSPACE_UIDS
    if not 0 < number < len(numbers):
        raise refuse(
            Code.ISOLATION_UNAVAILABLE,
            f"this installation has user numbers for {len(numbers) - 1} agents, and this is agent "
            f"{number}",
            "go on without it; ask the people who run this installation to split it in two",
            rule="an operating-system user for each agent (spec: files 8)",
        )
    return AgentUser(uid=numbers[number], gid=numbers[number])
