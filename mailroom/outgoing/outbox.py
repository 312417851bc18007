"""Notices that leave the building: rows, sent until they arrive or are given up."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from core.actions import Action
from core.actors import Actor, Person, System
from core.decision import Code, refuse
from core.deeds import Deed, require_deed
from ledger.services import record
from mailroom.models import NoticeState, OutgoingNotice
from mailroom.outgoing import webhook
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy

log = structlog.get_logger(__name__)

CHANNELS = {"webhook": "board_webhook", "email": "board_email"}
"""Each way out, and the organisation's setting that says where it leads."""
ATTEMPTS = 12
FIRST_WAIT = 5.0
LONGEST_WAIT = 6 * 3600.0
CLAIMED_FOR = timedelta(seconds=60)
"""How long a sender may take; one that dies is followed by another after this time."""
AT_ONCE = 4
"""Notices of one claim: sent one after the other, the slowest of receivers still in that time."""
BUDGET = 20.0
"""Seconds after which a run leaves the rest to the next, so that no receiver delays other jobs."""


def channels_of(policy: Policy) -> dict[str, str]:
    """Each way out to an organisation's Board, and where it leads; empty: there is none."""
    places = {name: str(policy.settings[setting]) for name, setting in CHANNELS.items()}
    return {name: place for name, place in places.items() if place}


def notify_board(
    *,
    policy: Policy,
    event: str,
    subject: str,
    body: str,
    data: Mapping[str, Any],
    caller: Actor,
    now: datetime,
) -> int:
    """Write what the Board shall be told, in the transaction of its cause; returns the rows."""
    event_id = str(uuid.uuid4())
    payload = {
        "type": event,
        "timestamp": now.isoformat(),
        "data": {"organisation": policy.organisation, "subject": subject, "body": body, **data},
    }
    rows = [
        OutgoingNotice(
            organisation_id=policy.organisation_id,
            event_id=event_id,
            channel=channel,
            target=target,
            payload=payload,
            due_at=now,
            created_at=now,
        )
        for channel, target in channels_of(policy).items()
    ]
    OutgoingNotice.objects.bulk_create(rows)
    record(
        Action.NOTICE_WRITTEN,
        by=caller,
        at=now,
        subject=f"notice:{event_id}",
        reason=subject,
        details={"event": event, "channels": [row.channel for row in rows]},
    )
    return len(rows)


def send_due(*, now: datetime) -> int:
    """Send what is due. Each row is claimed first, sent outside any transaction, then settled.

    Receivers take their time, so every claim and every settling goes by the time it is by then.
    """
    begun, sent = time.monotonic(), 0

    def by_now() -> datetime:
        return now + timedelta(seconds=time.monotonic() - begun)

    while claimed := _claim(by_now()):
        for row in claimed:
            _deliver(row, by_now())
            sent += 1
        if len(claimed) < AT_ONCE or time.monotonic() - begun > BUDGET:
            break
    return sent


def _claim(now: datetime) -> list[OutgoingNotice]:
    with transaction.atomic():
        due = OutgoingNotice.objects.filter(state=NoticeState.PENDING, due_at__lte=now)
        rows = list(due.order_by("due_at").select_for_update(skip_locked=True)[:AT_ONCE])
        for row in rows:
            row.attempts += 1
            row.due_at = now + CLAIMED_FOR
        OutgoingNotice.objects.bulk_update(rows, ["attempts", "due_at"])
    return rows


def _deliver(row: OutgoingNotice, now: datetime) -> None:
    problem = ""
    try:
        if row.channel == "webhook":
            webhook.send(row, now=now)
        else:
            _mail(row)
    except Exception as failure:  # noqa: BLE001  whatever keeps a notice back, it is tried again
        problem = f"{type(failure).__name__}: {failure}"[:500]
    with transaction.atomic():
        state, due = _next(row, problem, now)
        changed = OutgoingNotice.objects.filter(
            id=row.id, state=NoticeState.PENDING, attempts=row.attempts
        ).update(
            state=state,
            due_at=due,
            last_problem=problem,
            settled_at=None if state == NoticeState.PENDING else now,
        )
        if changed and state != NoticeState.PENDING:
            system = System(name="notices", organisation_id=row.organisation_id)
            record(
                Action(f"notice.{state}"),
                by=system,
                at=now,
                subject=f"notice:{row.event_id}",
                reason=problem,
                details={"channel": row.channel, "attempts": row.attempts},
            )


def _next(row: OutgoingNotice, problem: str, now: datetime) -> tuple[NoticeState, datetime]:
    if not problem:
        return NoticeState.SENT, now
    if row.attempts >= ATTEMPTS:
        return NoticeState.DEAD, now
    return NoticeState.PENDING, now + timedelta(seconds=wait_after(row.attempts))


def wait_after(attempts: int) -> float:
    """Seconds until the next attempt: doubling, with jitter so that many do not come at once."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (attempts - 1))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def _mail(row: OutgoingNotice) -> None:
    data = row.payload["data"]
    EmailMessage(
        subject=" ".join(str(data["subject"]).split())[:200],
        body=str(data["body"]),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[row.target],
        headers={"Message-ID": f"<{row.event_id}@nexus>"},
    ).send()


def resend(*, notice_id: int, reason: str, caller: Person, now: datetime) -> None:
    """Give a dead notice its attempts again, to where its organisation's channel leads now.

    The receiver sees the same event id. Raises Denied NOT_YOURS for a person of another group,
    NOT_FOUND, INVALID_TRANSITION for a notice that is not dead.
    """
    require_deed(caller, Deed.RESEND_NOTICE, reason=reason)
    with transaction.atomic():
        rows = OutgoingNotice.objects.select_for_update(of=("self",))
        row = rows.filter(id=notice_id, organisation_id=caller.organisation_id).first()
        if row is None:
            raise refuse(Code.NOT_FOUND, "there is no such notice", "look at the list again")
        if row.state != NoticeState.DEAD:
            raise refuse(
                Code.INVALID_TRANSITION,
                f"the notice is {row.state}",
                "wait: only what was given up is sent again",
                rule="a dead notice is resent by a person",
            )
        target = current_policy(row.organisation_id).settings[CHANNELS[row.channel]] or row.target
        OutgoingNotice.objects.filter(id=row.id).update(
            state=NoticeState.PENDING, attempts=0, due_at=now, settled_at=None, target=target
        )
        record(
            Action.NOTICE_RESENT,
            by=caller,
            at=now,
            subject=f"notice:{row.event_id}",
            reason=reason,
            details={"channel": row.channel},
        )
