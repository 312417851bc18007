"""How much agents and organisations may store: bytes by minute and day, in all, and sessions."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Sum

from core.database import fetch_row, hold_lock, needs_transaction, retry_broken
from core.decision import Code, Denied, refuse
from orgchart.organisation_settings import quota_of
from orgchart.policy.compiled import Policy
from toolbox.caller import Caller
from toolbox.models import Session, Stored

DAY = timedelta(days=1)
SMALL = 8 * 1024  # bytes that are not counted: the rate of calls bounds them

CHARGE = """
WITH own AS (
    SELECT coalesce(sum(bytes) FILTER (WHERE minute = %(minute)s), 0) AS m,
           coalesce(sum(bytes), 0) AS d
    FROM toolbox_usage
    WHERE agent_id = %(agent)s AND minute > %(minute)s - interval '1 day'
), summed AS (
    SELECT coalesce(sum(bytes), 0) AS o,
           greatest(max(minute), %(minute)s - interval '1 day') AS upto
    FROM toolbox_usage
    WHERE agent_id = -%(organisation)s AND minute > %(minute)s - interval '1 day'
), newest AS (
    SELECT coalesce(sum(bytes), 0) AS o
    FROM summed JOIN toolbox_usage ON organisation_id = %(organisation)s AND minute > upto
), used AS (
    SELECT m, d, summed.o + newest.o AS o FROM own, summed, newest
), charged AS (
    INSERT INTO toolbox_usage AS u (agent_id, organisation_id, minute, bytes)
    SELECT %(agent)s, %(organisation)s, %(minute)s, %(size)s FROM used
    WHERE m + %(size)s <= %(per_minute)s AND d + %(size)s + %(day_margin)s <= %(per_day)s
      AND o + %(size)s + %(margin)s <= %(organisation_per_day)s
    ON CONFLICT (agent_id, minute) DO UPDATE SET bytes = u.bytes + EXCLUDED.bytes
        WHERE u.bytes + EXCLUDED.bytes <= %(per_minute)s
    RETURNING 1
)
SELECT EXISTS (SELECT FROM charged), m, d, o FROM used
"""

SUM_UP = """
INSERT INTO toolbox_usage (agent_id, organisation_id, minute, bytes)
SELECT -o.id, o.id, ended.minute, ended.bytes
FROM orgchart_organisation o CROSS JOIN LATERAL (
    SELECT coalesce(max(minute), '-infinity') AS upto FROM toolbox_usage WHERE agent_id = -o.id
) AS summed CROSS JOIN LATERAL (
    SELECT minute, sum(bytes) AS bytes FROM toolbox_usage
    WHERE organisation_id = o.id AND minute > summed.upto AND minute <= %s
    GROUP BY minute
) AS ended
ON CONFLICT (agent_id, minute) DO NOTHING
"""
"""A day of an organisation has a row for each agent and minute: too many to add at each call."""
OPEN = timedelta(minutes=5)
"""So long a call may count in the minute in which it began."""

AHEAD_BYTES, AHEAD_ROWS = 64 * 1024, 100
"""Of an agent's small calls so many are counted before they are made."""


Counted = tuple[int, int, int]
"""An agent, and what its organisation's settings say of bytes and of rows in all."""


class CountedAhead:
    """The bytes and rows that this process has counted for the next small calls of each agent.

    They are used under the quotas under which they were counted, and under no others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[Counted, tuple[int, int]] = {}

    def take(self, counted: Counted, size: int) -> bool:
        """Use a row of this size; False where too little is left."""
        with self._lock:
            bytes_, rows = self._left.get(counted, (0, 0))
            if bytes_ < size or rows < 1:
                return False
            self._left[counted] = (bytes_ - size, rows - 1)
        return True

    def put(self, counted: Counted, size: int, more: int) -> None:
        """Add bytes and rows that were counted."""
        with self._lock:
            bytes_, rows = self._left.get(counted, (0, 0))
            self._left[counted] = (bytes_ + size, rows + more)

    def take_all(self) -> dict[Counted, tuple[int, int]]:
        """All that is left, which this process may no longer use."""
        with self._lock:
            left, self._left = self._left, {}
        return left


AHEAD = CountedAhead()

MARGIN = {"bytes_margin": 1024**3, "rows_margin": 10_000}
"""Where less than this is free, writers of an organisation count one after the other: calls under
way at once never store as much."""

STORE = """
WITH used AS (
    SELECT coalesce(sum(bytes), 0) AS b, coalesce(sum(rows), 0) AS r
    FROM toolbox_stored WHERE organisation_id = %(organisation)s
), stored AS (
    INSERT INTO toolbox_stored AS s (agent_id, organisation_id, bytes, rows)
    SELECT %(agent)s, %(organisation)s, %(size)s, %(rows)s FROM used
    WHERE b + %(size)s + %(bytes_margin)s <= %(all_bytes)s
      AND r + %(rows)s + %(rows_margin)s <= %(all_rows)s
    ON CONFLICT (agent_id) DO UPDATE
        SET bytes = s.bytes + EXCLUDED.bytes, rows = s.rows + EXCLUDED.rows
    RETURNING 1
)
SELECT b, r, EXISTS (SELECT FROM stored) FROM used
"""


GIVE_BACK = """
UPDATE toolbox_stored SET bytes = bytes - %s, rows = rows - %s WHERE agent_id = %s
"""

GIVE_BACK_RESERVED = """
WITH used AS (
    UPDATE toolbox_usage SET bytes = greatest(0, bytes - %(size)s)
    WHERE agent_id IN (%(agent)s, -%(organisation)s) AND minute = %(minute)s
)
UPDATE toolbox_stored SET bytes = greatest(0, bytes - %(size)s) WHERE agent_id = %(agent)s
"""
"""Bytes that were counted and not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One limit: what it counts, and who can help where it is used up."""

    what: str
    limit: int
    help: str

    def exceeded_by(self, used: int) -> Denied:
        """The refusal of a call that would go past it."""
        return refuse(
            Code.QUOTA_EXCEEDED,
            f"{self.what}: {used} of {self.limit} are used",
            self.help,
            rule="quota",
            what=self.what,
            used=used,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True)
class Writer:
    """Who stores something: an agent, or by minus its own id the organisation as such."""

    id: int
    organisation_id: int
    settings: Mapping[str, Any]


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
        _charge_bytes(agent=agent, policy=policy, size=size, now=now)
    elif AHEAD.take(counted, size):
        return
    elif _store(_writer(agent, policy), size=AHEAD_BYTES, rows=AHEAD_ROWS, **MARGIN)[0]:
        # What is rolled back was not counted.
        transaction.on_commit(partial(AHEAD.put, counted, AHEAD_BYTES - size, AHEAD_ROWS - 1))
        return
    _charge_total(_writer(agent, policy), size=size, rows=1)


@needs_transaction
def charge_incoming(
    *, organisation_id: int, values: Mapping[str, Any], size: int, rows: int
) -> None:
    """Count what came in without an agent, such as feedback. Raises Denied QUOTA_EXCEEDED.

    It counts in all as what agents write does, under the organisation's settings (Spec: tasks 51).
    """
    _charge_total(Writer(-organisation_id, organisation_id, values), size=size, rows=rows)


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
        _charge_bytes(agent=agent, policy=caller.policy, size=size, now=now)
        _charge_total(_writer(agent, caller.policy), size=size, rows=0)
    try:
        yield room
    finally:
        unused: dict[str, Any] = {
            "agent": agent,
            "organisation": caller.organisation_id,
            "minute": _minute(now),
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
        _charge_bytes(agent=caller.agent.id, policy=caller.policy, size=size, now=now)


def sum_up_minutes(now: datetime) -> None:
    """Add what all agents of an organisation wrote in each minute, where that has ended."""
    with connection.cursor() as cursor:
        cursor.execute(SUM_UP, [now - OPEN])


def give_back() -> None:
    """Count no more than was used; for the end of this process."""
    left = AHEAD.take_all()
    if not left:
        return
    with connection.cursor() as cursor:
        cursor.executemany(GIVE_BACK, [(*unused, agent) for (agent, *_), unused in left.items()])


def _charge_bytes(*, agent: int, policy: Policy, size: int, now: datetime) -> None:
    """Count in a minute and a day; near the limit of a day one writer after the other."""
    quotas = byte_quotas(policy.settings)
    limits = {name: quota.limit for name, quota in quotas.items()}
    values: dict[str, Any] = {
        "agent": agent,
        "organisation": policy.organisation_id,
        "minute": _minute(now),
        "size": size,
        **limits,
    }
    # Calls of an agent under way at once write no more than it may in the minutes they began in.
    far = {"day_margin": 2 * limits["per_minute"], "margin": MARGIN["bytes_margin"]}
    is_charged, *used = _charge(values | far)
    if not is_charged:
        with transaction.atomic():
            hold_lock("bytes", policy.organisation_id)
            is_charged, *used = _charge(values | {"day_margin": 0, "margin": 0})
    if not is_charged:
        for quota, have in zip(quotas.values(), used, strict=True):
            if have + size > quota.limit:
                raise quota.exceeded_by(have)
        # Another call took the rest of the minute after its count was read.
        raise quotas["per_minute"].exceeded_by(used[0])


def _charge(values: Mapping[str, Any]) -> tuple[bool, int, int, int]:
    """Whether there was room; what was used before in the minute, the day, and the day by all."""
    is_charged, minute, day, by_all = fetch_row(CHARGE, values)
    return is_charged, int(minute), int(day), int(by_all)


def _minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)


def _charge_total(writer: Writer, *, size: int, rows: int) -> None:
    """Count in what the organisation stores in all; near its limit one writer after the other."""
    if _store(writer, size=size, rows=rows, **MARGIN)[0]:
        return
    with transaction.atomic():
        hold_lock("stored", writer.organisation_id)
        is_stored, *used = _store(writer, size=size, rows=rows, bytes_margin=0, rows_margin=0)
    if not is_stored:
        quotas = total_quotas(writer.settings)
        for quota, have, more in zip(quotas, used, (size, rows), strict=True):
            if have + more > quota.limit:
                raise quota.exceeded_by(have)


def _store(writer: Writer, **counted: int) -> tuple[bool, int, int]:
    """Whether there was room outside of the margin; the bytes and rows that were used before."""
    all_bytes, all_rows = (quota.limit for quota in total_quotas(writer.settings))
    values = {"agent": writer.id, "organisation": writer.organisation_id}
    limits = {"all_bytes": all_bytes, "all_rows": all_rows}
    used_bytes, used_rows, is_stored = fetch_row(STORE, values | limits | counted)
    return is_stored, int(used_bytes), int(used_rows)


def stored_by(organisation_id: int) -> tuple[int, int]:
    """Bytes and rows that an organisation stores in all, as its quotas count them."""
    found = Stored.objects.filter(organisation_id=organisation_id).aggregate(
        bytes=Sum("bytes", default=0), rows=Sum("rows", default=0)
    )
    return int(found["bytes"]), int(found["rows"])


def byte_quotas(values: Mapping[str, Any]) -> dict[str, Quota]:
    """The quotas of bytes under an organisation's settings."""
    return {
        "per_minute": Quota(
            what="bytes that an agent writes in a minute",
            limit=quota_of(values, "bytes_per_minute"),
            help="wait a minute, then call again",
        ),
        "per_day": Quota(
            what="bytes that an agent writes in a day",
            limit=quota_of(values, "bytes_per_day"),
            help=(
                "write less, or ask your superior; "
                "the Board and the people who run NEXUS set the limit"
            ),
        ),
        "organisation_per_day": Quota(
            what="bytes that an organisation writes in a day",
            limit=quota_of(values, "organisation_bytes_per_day"),
            help="ask your superior; the Board and the people who run NEXUS set the limit",
        ),
    }


def total_quotas(values: Mapping[str, Any]) -> tuple[Quota, Quota]:
    """The quotas of what an organisation stores in all, under its settings: bytes, rows."""
    help_ = (
        "tell your superior; the Board and the people who run NEXUS set the limit, "
        "and nothing is lost"
    )
    return (
        Quota(
            what="bytes that an organisation stores in all",
            limit=quota_of(values, "organisation_bytes"),
            help=help_,
        ),
        Quota(
            what="rows that an organisation stores in all",
            limit=quota_of(values, "organisation_rows"),
            help=help_,
        ),
    )


@needs_transaction
def require_session(*, caller: Caller, now: datetime) -> None:
    """Raise Denied QUOTA_EXCEEDED where the agent has opened its sessions of the day.

    Until the transaction ends no other call of the agent opens one.
    """
    hold_lock("sessions", caller.agent.id)
    quota = Quota(
        what="sessions that an agent opens in a day",
        limit=quota_of(caller.policy.settings, "sessions_per_day"),
        help="use a session that you have opened, or leave X-Nexus-Session out",
    )
    opened = Session.objects.filter(agent_id=caller.agent.id, opened_at__gt=now - DAY).count()
    if opened >= quota.limit:
        raise quota.exceeded_by(opened)
