"""How much agents and organisations may store: bytes by minute and day, in all, and sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection, transaction

from core.database import in_last, needs_transaction, retry_broken
from core.decision import Denied
from orgchart.organisation_settings import quota_of
from orgchart.policy.compiled import Policy
from toolbox.caller import Caller
from toolbox.models import Session
from toolbox.modes import hold_opening_of_sessions
from toolbox.quotas.limits import Quota
from toolbox.quotas.stored import AHEAD, Writer, charge_total, count_ahead
from toolbox.quotas.written import charge_written, minute_of

DAY = timedelta(days=1)
SMALL = 8 * 1024  # bytes that are not counted: the rate of calls bounds them

GIVE_BACK_RESERVED = """
WITH used AS (
    UPDATE toolbox_usage SET bytes = greatest(0, bytes - %(size)s)
    WHERE agent_id IN (%(agent)s, -%(organisation)s) AND minute = %(minute)s
)
UPDATE toolbox_stored SET bytes = greatest(0, bytes - %(size)s) WHERE agent_id = %(agent)s
"""
"""Bytes that were counted and not written."""


def _writer(agent: int, policy: Policy) -> Writer:
    return Writer(agent, policy.organisation_id, policy.settings)


def charge(*, agent: int, policy: Policy, size: int, now: datetime) -> None:
    """Count bytes that a call wants to store, and a row. Raises Denied QUOTA_EXCEEDED.

    Spec: settings 6. The rate of small calls bounds what a day can bring: they count in all only,
    many of an agent at once, before they are made. A process that dies has counted too many.
    """
    values = policy.settings
    counted = (agent, values["organisation_bytes"], values["organisation_rows"])
    if size > SMALL:
        charge_written(agent=agent, policy=policy, size=size, now=now)
    elif AHEAD.take(counted, size) or count_ahead(_writer(agent, policy), counted, size=size):
        return
    charge_total(_writer(agent, policy), size=size, rows=1)


@needs_transaction
def charge_incoming(
    *, organisation_id: int, values: Mapping[str, Any], size: int, rows: int
) -> None:
    """Count what came in without an agent, such as feedback. Raises Denied QUOTA_EXCEEDED.

    It counts in all as what agents write does, under the organisation's settings (Spec: tasks 51).
    """
    charge_total(Writer(-organisation_id, organisation_id, values), size=size, rows=rows)


@dataclass(slots=True)
class ReservedBytes:
    """How many of the bytes that were counted for a call it has used."""

    used: int = 0


@contextmanager
def reserved(*, caller: Caller, size: int, now: datetime) -> Iterator[ReservedBytes]:
    """Count the most that a call may come to store; what it has not used is given back at its end.

    For more bytes than are in its parameters. A process that dies has counted too many. Raises
    Denied QUOTA_EXCEEDED.
    """
    agent, room = caller.agent.id, ReservedBytes()
    with transaction.atomic():
        charge_written(agent=agent, policy=caller.policy, size=size, now=now)
        charge_total(_writer(agent, caller.policy), size=size, rows=0)
    try:
        yield room
    finally:
        unused: dict[str, Any] = {
            "agent": agent,
            "organisation": caller.organisation_id,
            "minute": minute_of(now),
            "size": max(0, size - room.used),
        }
        retry_broken(partial(_give_back_reserved, unused), is_repeatable=True)


def _give_back_reserved(unused: Mapping[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(GIVE_BACK_RESERVED, unused)


def charge_answer(*, caller: Caller, size: int, now: datetime) -> bool:
    """Count the bytes of an answer that is kept for a day; False where a quota has no room."""
    try:
        charge_bytes(caller=caller, size=size, now=now)
    except Denied:
        return False
    return True


def charge_bytes(*, caller: Caller, size: int, now: datetime) -> None:
    """Count bytes of a minute and a day that do not stay. Raises Denied QUOTA_EXCEEDED."""
    if size > SMALL:
        charge_written(agent=caller.agent.id, policy=caller.policy, size=size, now=now)


@needs_transaction
def require_session(*, caller: Caller, now: datetime) -> None:
    """Raise Denied QUOTA_EXCEEDED where the agent has opened its sessions of the day.

    Until the transaction ends no other call of the agent opens one.
    """
    hold_opening_of_sessions(caller.agent.id)
    quota = Quota(
        what="sessions that an agent opens in a day",
        limit=quota_of(caller.policy.settings, "sessions_per_day"),
        help="use a session that you have opened, or leave X-Nexus-Session out",
    )
    of_day = in_last(DAY, "opened_at", now=now)
    opened = Session.objects.filter(of_day, agent_id=caller.agent.id).count()
    if opened >= quota.limit:
        raise quota.exceeded_by(opened)
