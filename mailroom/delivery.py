"""The one writer of mails: a mail and its event in one statement, whoever decided it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from pydantic_core import to_json

from core.actions import Action
from core.actors import Actor, System
from core.decision import Code, refuse
from core.events import Event
from core.ids import timed_id
from ledger import sql as ledger_sql
from mailroom.models import SYSTEM
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import BOARD
from toolbox.wake import wake

ATTEMPTS = 20

COLUMNS = (
    "id, organisation_id, sender_id, recipient_id, from_agent, to_agent, mail_type, subject, body, "
    "priority, attachments, reply_to_id, contract_ref, status, created_at, delivered_at, route_log"
)


def insert_mail(prefix: str, source: str) -> str:
    """The INSERT of one mail as text, from a CTE that has a row when it may be delivered."""
    p = prefix
    return f"""INSERT INTO mailroom_mail ({COLUMNS})
    SELECT %({p}_id)s, %({p}_organisation)s, %({p}_sender)s::bigint, %({p}_recipient)s::bigint,
           %({p}_from)s, %({p}_to)s, %({p}_type)s, %({p}_subject)s, %({p}_body)s, %({p}_priority)s,
           %({p}_attachments)s::jsonb, %({p}_reply_to)s, %({p}_contract_ref)s, 'delivered',
           %({p}_at)s, %({p}_at)s, %({p}_route_log)s::jsonb
    FROM {source} ON CONFLICT (id) DO NOTHING RETURNING id"""


DELIVER = f"""
WITH parties AS (
    SELECT 1 WHERE NOT EXISTS (
        SELECT 1 FROM orgchart_agent
        WHERE id IN (%(m_sender)s::bigint, %(m_recipient)s::bigint) AND NOT active)
), mail AS ({insert_mail("m", "parties")}),
ev AS ({ledger_sql.insert("ev", "mail")})
SELECT (SELECT count(*) FROM parties), (SELECT count(*) FROM mail)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail about to be delivered: everything but its id."""

    organisation_id: int
    sender: Agent | None
    recipient: Agent | None
    sender_name: str
    mail_type: str
    subject: str
    body: str
    priority: str = "medium"
    attachments: Sequence[Mapping[str, str]] = ()
    reply_to: str | None = None
    contract_ref: str | None = None
    route_log: Sequence[str] = field(default_factory=tuple)


def mail_params(prefix: str, letter: Letter, mail_id: str, at: datetime) -> dict[str, Any]:
    """The parameters of `insert_mail`."""
    values = {
        "id": mail_id,
        "organisation": letter.organisation_id,
        "sender": letter.sender.id if letter.sender else None,
        "recipient": letter.recipient.id if letter.recipient else None,
        "from": letter.sender_name,
        "to": letter.recipient.handle if letter.recipient else BOARD,
        "type": letter.mail_type,
        "subject": letter.subject,
        "body": letter.body,
        "priority": letter.priority,
        "attachments": to_json(letter.attachments).decode() if letter.attachments else "[]",
        "reply_to": letter.reply_to or None,
        "contract_ref": letter.contract_ref or None,
        "at": at,
        "route_log": to_json(letter.route_log).decode(),
    }
    return {f"{prefix}_{name}": value for name, value in values.items()}


def post(letter: Letter, *, caller: Actor, now: datetime) -> str:
    """Deliver a letter that has been decided: mail and event in one statement; returns its id.

    An id that clashes is made again. Raises Denied RECIPIENT_INACTIVE where a party was
    deactivated since the policy was read.
    """
    for _ in range(ATTEMPTS):
        mail_id = timed_id("MAIL", now)
        event = _event(letter, mail_id, caller, now)
        with connection.cursor() as cursor:
            cursor.execute(
                DELIVER,
                mail_params("m", letter, mail_id, now) | ledger_sql.params(event),
            )
            parties, mails = cursor.fetchone()
        if mails:
            wake(letter.recipient.id if letter.recipient else None)
            return mail_id
        if not parties:
            raise refuse(
                Code.RECIPIENT_INACTIVE,
                "sender or recipient was deactivated meanwhile",
                "look at your contacts again",
                rule="recipient is active (seed 000 §4.5)",
            )
    raise RuntimeError(f"no free mail id in {ATTEMPTS} attempts")


def _event(letter: Letter, mail_id: str, caller: Actor, now: datetime) -> Event:
    return Event.by(
        caller,
        Action.MAIL_DELIVERED,
        at=now,
        subject=f"mail:{mail_id}",
        for_agent_id=letter.recipient.id if letter.recipient else None,
        kind="mail",
        details={
            "from": letter.sender_name,
            "to": letter.recipient.handle if letter.recipient else BOARD,
            "type": letter.mail_type,
            **({"contract_ref": letter.contract_ref} if letter.contract_ref else {}),
        },
    )


def deliver(  # noqa: PLR0913  a mail has these parts
    *,
    caller: Actor,
    recipient: Agent | None,
    mail_type: str,
    subject: str,
    body: str,
    now: datetime,
    priority: str = "medium",
    contract_ref: str = "",
    reply_to: str | None = None,
    attachments: Sequence[Mapping[str, str]] = (),
    rule: str = "",
) -> str:
    """Deliver what a higher room has decided may be sent: a contract's notice, a report, a verdict.

    The sender is the calling agent; a person's mail comes from `board`. Returns the mail's id.
    """
    sender: Agent | None = getattr(caller, "agent", None)
    letter = Letter(
        organisation_id=caller.organisation_id,
        sender=sender,
        recipient=recipient,
        sender_name=sender.handle if sender else BOARD,
        mail_type=mail_type,
        subject=subject[:200],
        body=body[:10_000],
        priority=priority,
        attachments=attachments,
        reply_to=reply_to,
        contract_ref=contract_ref,
        route_log=[f"allowed: {rule}"] if rule else [],
    )
    return post(letter, caller=caller, now=now)


def notice(
    *,
    organisation_id: int,
    recipient: Agent,
    subject: str,
    body: str,
    contract_ref: str = "",
    reply_to: str | None = None,
) -> Letter:
    """A letter of the system itself."""
    return Letter(
        organisation_id=organisation_id,
        sender=None,
        recipient=recipient,
        sender_name=SYSTEM,
        mail_type="info",
        subject=subject[:200],
        body=body[:10_000],
        reply_to=reply_to,
        contract_ref=contract_ref,
        route_log=["system notice"],
    )


def post_notice(
    *,
    organisation_id: int,
    recipient: Agent,
    subject: str,
    body: str,
    now: datetime,
    contract_ref: str = "",
    reply_to: str | None = None,
) -> str:
    """Put a notice of the system into an agent's inbox; returns its id."""
    letter = notice(
        organisation_id=organisation_id,
        recipient=recipient,
        subject=subject,
        body=body,
        contract_ref=contract_ref,
        reply_to=reply_to,
    )
    return post(letter, caller=System(name="mailroom", organisation_id=organisation_id), now=now)
