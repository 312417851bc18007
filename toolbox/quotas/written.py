"""Bytes that are written in a minute and in a day, by an agent and by its organisation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from core.database import fetch_row, hold_lock
from orgchart.policy.compiled import Policy
from toolbox.quotas.limits import byte_quotas
from toolbox.quotas.stored import MARGIN

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


def charge_written(*, agent: int, policy: Policy, size: int, now: datetime) -> None:
    """Count in a minute and a day; near the limit of a day one writer after the other."""
    quotas = byte_quotas(policy.settings)
    limits = {name: quota.limit for name, quota in quotas.items()}
    values: dict[str, Any] = {
        "agent": agent,
        "organisation": policy.organisation_id,
        "minute": minute_of(now),
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


def minute_of(now: datetime) -> datetime:
    """The minute in which this moment counts."""
    return now.replace(second=0, microsecond=0)


def sum_up_minutes(now: datetime) -> None:
    """Add what all agents of an organisation wrote in each minute, where that has ended."""
    with connection.cursor() as cursor:
        cursor.execute(SUM_UP, [now - OPEN])
