"""What a refused mail leaves: rejection, notice, event, in one statement (seed 000 C-06, §4.5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection

from core.decision import Code, Denied, Deny
from core.events import Event
from core.ids import timed_id
from ledger import sql as ledger_sql
from mailroom.delivery import ATTEMPTS, insert_mail, mail_params, notice
from mailroom.rules import VIOLATIONS
from orgchart.policy.compiled import Agent
from toolbox.caller import Caller
from toolbox.wake import wake

REJECT = f"""
WITH told AS (SELECT 1 WHERE %(r_tell)s), mail AS ({insert_mail("m", "told")}),
rejection AS (
    INSERT INTO mailroom_mailrejection
        (organisation_id, from_agent, to_agent, mail_type, code, reason, attempted_at)
    SELECT %(r_organisation)s, %(r_from)s, %(r_to)s, %(r_type)s, %(r_code)s, %(r_reason)s, %(r_at)s
    WHERE NOT %(r_tell)s OR EXISTS (SELECT 1 FROM mail)
    RETURNING id
)
{ledger_sql.insert("ev", "rejection")}
"""


def as_rejection(refusal: Denied, caller: Caller, to: str, mail_type: str, now: datetime) -> Denied:
    """The same refusal, leaving the rows of a refused mail behind it."""

    def on_refused(event: Event) -> None:
        write_rejection(
            deny=refusal.deny, event=event, caller=caller, to=to, mail_type=mail_type, now=now
        )

    return Denied(refusal.deny, on_refused)


def write_rejection(
    *, deny: Deny, event: Event, caller: Caller, to: str, mail_type: str, now: datetime
) -> None:
    """Write rejection, event, and the notice that the code asks for: all three or none.

    A notice's id that clashes is made again.
    """
    told = _told(deny.code, caller)
    letter = notice(
        organisation_id=caller.organisation_id,
        recipient=told or caller.agent,
        subject=_subject(deny.code, caller, to),
        body=f"{deny.message}\n\n{_further(deny, caller)}",
    )
    values: dict[str, Any] = {
        "r_organisation": caller.organisation_id,
        "r_from": caller.handle,
        "r_to": _storable(to),
        "r_type": _storable(mail_type)[:32],
        "r_code": deny.code.value,
        "r_reason": deny.message,
        "r_at": now,
        "r_tell": told is not None,
    }
    for _ in range(ATTEMPTS):
        with connection.cursor() as cursor:
            cursor.execute(
                REJECT,
                values
                | mail_params("m", letter, timed_id("MAIL", now), now)
                | ledger_sql.params(event),
            )
            if cursor.rowcount:
                wake(told.id if told else None)
                return
    raise RuntimeError(f"no free mail id in {ATTEMPTS} attempts")


def _told(code: Code, caller: Caller) -> Agent | None:
    """Whom it is told: a violator itself, of an inactive recipient the sender's superior (§4.5)."""
    if code in VIOLATIONS:
        return caller.agent
    if code is Code.RECIPIENT_INACTIVE:
        return caller.policy.agents.get(caller.agent.superior)
    return None


def _subject(code: Code, caller: Caller, to: str) -> str:
    if code is Code.RECIPIENT_INACTIVE:
        return f"{caller.handle} wrote to {_storable(to)}, who is deactivated"
    if code is Code.CONTACT_DENIED:
        return f"You may not contact {_storable(to)}"
    return f"Your mail to {_storable(to)} was refused"


def _further(deny: Deny, caller: Caller) -> str:
    if deny.code is Code.RECIPIENT_INACTIVE:
        return f"The mail was refused. Name who stands in, if {caller.handle} needs somebody there."
    return f"Next: {deny.next_action}"


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")[:64]
