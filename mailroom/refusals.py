"""A refused mail: rejection, system mail and event in one statement (Spec: mail 18)."""

from __future__ import annotations

from datetime import datetime

from core.actors import System
from core.decision import Code, Denied, Deny
from core.events import Event, text
from core.key_form import without_keys
from ledger import sql as ledger_sql
from mailroom.delivery import (
    SYSTEM_ROUTE,
    build_system_mail,
    execute_with_free_id,
    mail_params,
    mail_sql,
)
from mailroom.rules import VIOLATIONS
from orgchart.policy.compiled import Agent
from toolbox.caller import Caller
from toolbox.wake import wake

REJECT = f"""
WITH reader AS (SELECT 1 WHERE %(r_notify)s), mail AS ({mail_sql("reader")}),
rejection AS (
    INSERT INTO mailroom_mailrejection
        (organisation_id, from_agent, to_agent, mail_type, code, reason, attempted_at)
    SELECT %(r_organisation)s, %(r_from)s, %(r_to)s, %(r_type)s, %(r_code)s, %(r_reason)s, %(r_at)s
    WHERE NOT %(r_notify)s OR EXISTS (SELECT 1 FROM mail)
    RETURNING id
), ev AS ({ledger_sql.insert("ev", "rejection")})
SELECT 1, (SELECT count(*) FROM rejection)
"""


def as_rejection(refusal: Denied, caller: Caller, to: str, mail_type: str, now: datetime) -> Denied:
    """The same refusal, which also inserts a mail rejection when it is recorded."""

    def on_refused(event: Event) -> None:
        insert_rejection(
            deny=refusal.deny, event=event, caller=caller, to=to, mail_type=mail_type, now=now
        )

    return Denied(refusal.deny, on_refused)


def insert_rejection(
    *, deny: Deny, event: Event, caller: Caller, to: str, mail_type: str, now: datetime
) -> None:
    """Insert rejection, event, and the system mail that the code asks for: all three or none."""
    reader, name = _reader(deny.code, caller), text(without_keys(to), 64)
    recipient, message = reader or caller.agent, without_keys(deny.message)
    mail = build_system_mail(
        recipient=recipient,
        subject=_subject(deny.code, caller, name),
        body=f"{message}\n\n{_next_step(deny, caller, recipient)}",
        quotes=[caller.agent.id],
    )
    system = System(name="mailroom", organisation_id=caller.organisation_id)
    values = mail_params(mail, system, recipient, SYSTEM_ROUTE, now) | {
        "r_organisation": caller.organisation_id,
        "r_from": caller.handle,
        "r_to": name,
        "r_type": text(without_keys(mail_type), 32),
        "r_code": deny.code.value,
        "r_reason": message,
        "r_at": now,
        "r_notify": reader is not None,
    }
    values |= ledger_sql.params(event)
    execute_with_free_id(REJECT, lambda mail_id: values | {"m_id": mail_id}, now)
    if reader is not None and reader.id != caller.agent.id:  # the door wakes the caller
        wake(reader.id)


def _reader(code: Code, caller: Caller) -> Agent | None:
    """Who gets a system mail: the sender after a violation, its superior where the recipient is
    inactive (Spec: mail 21).
    """
    if code in VIOLATIONS:
        return caller.agent
    if code is Code.RECIPIENT_INACTIVE:
        return caller.policy.agents.get(caller.agent.superior)
    return None


def _subject(code: Code, caller: Caller, to: str) -> str:
    if code is Code.RECIPIENT_INACTIVE:
        return f"{caller.handle} wrote to {to}, who is deactivated"
    if code is Code.CONTACT_DENIED:
        return f"You may not contact {to}"
    return f"Your mail to {to} was refused"


def _next_step(deny: Deny, caller: Caller, reader: Agent) -> str:
    if deny.code is not Code.RECIPIENT_INACTIVE:
        return f"Next: {deny.next_action}"
    if caller.policy.rule_between(reader, caller.agent) is None:
        return f"The mail was refused. You may not write to {caller.handle}: it needs a superior."
    return f"The mail was refused. Tell {caller.handle} which agent to write to instead."
