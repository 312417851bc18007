"""How much one agent, and one organisation, may store: bytes by minute and day, sessions by day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from core.decision import Code, Denied, refuse
from toolbox.caller import Caller
from toolbox.models import Session

DAY = timedelta(days=1)
SMALL = 8 * 1024  # bytes that are not counted: the rate of calls bounds them

CHARGE = """
WITH used AS (
    SELECT coalesce(sum(bytes) FILTER (WHERE agent_id = %(agent)s AND minute = %(minute)s), 0) AS m,
           coalesce(sum(bytes) FILTER (WHERE agent_id = %(agent)s), 0) AS d,
           coalesce(sum(bytes), 0) AS o
    FROM toolbox_usage
    WHERE organisation_id = %(organisation)s AND minute > %(minute)s - interval '1 day'
), charged AS (
    INSERT INTO toolbox_usage AS u (agent_id, organisation_id, minute, bytes)
    SELECT %(agent)s, %(organisation)s, %(minute)s, %(size)s FROM used
    WHERE m + %(size)s <= %(per_minute)s AND d + %(size)s <= %(per_day)s
      AND o + %(size)s <= %(organisation_per_day)s
    ON CONFLICT (agent_id, minute) DO UPDATE SET bytes = u.bytes + EXCLUDED.bytes
)
SELECT m, d, o FROM used
"""


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


def charge_bytes(*, caller: Caller, size: int, now: datetime) -> None:
    """Count bytes that a call wants to store. Raises Denied QUOTA_EXCEEDED; then none count."""
    if size <= SMALL:
        return
    quotas = byte_quotas()
    values: dict[str, Any] = {
        "agent": caller.agent.id,
        "organisation": caller.organisation_id,
        "minute": now.replace(second=0, microsecond=0),
        "size": size,
    }
    limits = {name: quota.limit for name, quota in quotas.items()}
    with connection.cursor() as cursor:
        cursor.execute(CHARGE, values | limits)
        row = cursor.fetchone()
    for quota, used in zip(quotas.values(), row, strict=True):
        if used + size > quota.limit:
            raise quota.exceeded_by(int(used))


def byte_quotas() -> dict[str, Quota]:
    """The quotas of bytes as the settings say now."""
    return {
        "per_minute": Quota(
            what="bytes that an agent writes in a minute",
            limit=settings.NEXUS_BYTES_PER_MINUTE,
            help="wait a minute, then call again",
        ),
        "per_day": Quota(
            what="bytes that an agent writes in a day",
            limit=settings.NEXUS_BYTES_PER_DAY,
            help="write less, or ask your superior; the people who run NEXUS set the limit",
        ),
        "organisation_per_day": Quota(
            what="bytes that an organisation writes in a day",
            limit=settings.NEXUS_ORGANISATION_BYTES_PER_DAY,
            help="ask your superior; the people who run NEXUS set the limit",
        ),
    }


def require_session(*, caller: Caller, now: datetime) -> None:
    """Raise Denied QUOTA_EXCEEDED where the agent has opened its sessions of the day."""
    quota = Quota(
        what="sessions that an agent opens in a day",
        limit=settings.NEXUS_SESSIONS_PER_DAY,
        help="use a session that you have opened, or leave X-Nexus-Session out",
    )
    opened = Session.objects.filter(agent_id=caller.agent.id, opened_at__gt=now - DAY).count()
    if opened >= quota.limit:
        raise quota.exceeded_by(opened)
