"""Sending, escalating and reading mail; the channels that contracts open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Denied, Deny, require
from ledger.services import record
from mailroom import rules
from mailroom.delivery import Letter, deliver, post, post_notice
from mailroom.escalations import answers
from mailroom.escalations import services as escalations
from mailroom.models import ContactGrant, Mail
from mailroom.parties import require_own
from mailroom.refusals import as_rejection
from mailroom.rules import Channel
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import BOARD, ESCALATION
from toolbox.caller import Caller
from toolbox.scopes import active_scopes

__all__ = ["close_grants", "deliver", "hand_over", "open_grants", "post_notice", "send_mail"]


LISTED = 50
"""Unread mails that a successor's notice names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A mail as its sender wrote it, before any decision."""

    to: str
    mail_type: str
    subject: str
    body: str
    priority: str = "medium"
    attachments: Sequence[Mapping[str, str]] = ()
    reply_to: str | None = None
    contract_ref: str | None = None


def send_mail(*, caller: Caller, draft: Draft, now: datetime) -> dict[str, Any]:
    """Route one mail (seed 000 §3.3): decide, then deliver with its event in one statement.

    Raises Denied with the rule that refused it; the refusal leaves a rejection, and for a
    violation a notice in the sender's own inbox.
    """
    try:
        return _routed(caller, draft, now)
    except Denied as refusal:
        raise as_rejection(refusal, caller, draft.to, draft.mail_type, now) from refusal


def _routed(caller: Caller, draft: Draft, now: datetime) -> dict[str, Any]:
    recipient = _recipient(caller, draft.to)
    if recipient is not None and _needs_grant(caller, recipient):
        with transaction.atomic():
            return _decided(caller, draft, recipient, now, _channels(caller, draft))
    return _decided(caller, draft, recipient, now, ())


def _recipient(caller: Caller, name: str) -> Agent | None:
    """The recipient; None is the Board. Raises Denied when there is none."""
    if name == BOARD:
        return None
    found = rules.find_recipient(name, caller.policy)
    if isinstance(found, Deny):
        raise Denied(found)
    return found


def _needs_grant(caller: Caller, recipient: Agent) -> bool:
    rule = caller.policy.rule_between(caller.agent, recipient)
    return rule is not None and rule.needs_contract


def _channels(caller: Caller, draft: Draft) -> list[Channel]:
    """Open grants of the named contract, held against its closing until this mail is in."""
    if not draft.contract_ref:
        return []
    grants = ContactGrant.objects.raw(
        "SELECT * FROM mailroom_contactgrant WHERE contract_ref = %s AND organisation_id = %s "
        "AND closed_at IS NULL FOR SHARE",
        [draft.contract_ref, caller.organisation_id],
    )
    return [
        Channel(g.contract_ref, g.sender_id, g.recipient_id, frozenset(g.types)) for g in grants
    ]


def _decided(
    caller: Caller,
    draft: Draft,
    recipient: Agent | None,
    now: datetime,
    channels: Sequence[Channel],
) -> dict[str, Any]:
    policy, sender = caller.policy, caller.agent
    if recipient is None:
        allowed = require(rules.can_mail_board(sender, draft.mail_type, policy))
    else:
        allowed = require(rules.can_mail(sender, recipient, draft.mail_type, policy, channels))
    if draft.attachments:
        paths = [str(a["path"]) for a in draft.attachments]
        scopes = active_scopes(sender.id)
        require(rules.can_attach(paths, sender, policy, scopes))
    if draft.reply_to or (draft.contract_ref and not channels):
        require_own(caller, reply_to=draft.reply_to, contract_ref=draft.contract_ref)
    letter = Letter(
        organisation_id=caller.organisation_id,
        sender=sender,
        recipient=recipient,
        sender_name=sender.handle,
        mail_type=draft.mail_type,
        subject=draft.subject,
        body=draft.body,
        priority=draft.priority,
        attachments=draft.attachments,
        reply_to=draft.reply_to,
        contract_ref=draft.contract_ref,
        route_log=[f"from {caller.actor}", f"allowed: {allowed.rule}", f"policy {policy.version}"],
    )
    return _posted(caller, letter, now)


def _posted(caller: Caller, letter: Letter, now: datetime) -> dict[str, Any]:
    if letter.mail_type == ESCALATION or letter.reply_to:
        with transaction.atomic():
            mail_id = post(letter, caller=caller, now=now)
            if letter.reply_to:
                answers.answer_by_reply(mail_id=letter.reply_to, reply=mail_id, by=caller, now=now)
            if letter.mail_type == ESCALATION:
                escalations.open_escalation(mail_id=mail_id, caller=caller, now=now)
    else:
        mail_id = post(letter, caller=caller, now=now)
    return {"mail_id": mail_id, "status": "delivered", "created_at": now}


def open_grants(
    *, caller: Actor, contract_ref: str, channels: Sequence[Channel], now: datetime
) -> None:
    """Open channels between agents for as long as a contract is active; in its transaction."""
    for channel in channels:
        ContactGrant.objects.create(
            organisation_id=caller.organisation_id,
            contract_ref=contract_ref,
            sender_id=channel.sender_id,
            recipient_id=channel.recipient_id,
            types=sorted(channel.types),
            opened_at=now,
        )
    if channels:
        record(
            Action.GRANT_OPENED,
            by=caller,
            at=now,
            subject=f"contract:{contract_ref}",
            details={"channels": len(channels)},
        )


def close_grants(*, caller: Actor, contract_ref: str, now: datetime) -> int:
    """Close a contract's channels; waits for mails that are passing through them right now."""
    closed = ContactGrant.objects.filter(
        organisation_id=caller.organisation_id, contract_ref=contract_ref, closed_at=None
    ).update(closed_at=now)
    if closed:
        record(
            Action.GRANT_CLOSED,
            by=caller,
            at=now,
            subject=f"contract:{contract_ref}",
            details={"channels": closed},
        )
    return closed


def hand_over(*, caller: Actor, leaver: Agent, successor: Agent | None, now: datetime) -> int:
    """Tell the successor of the leaver's unread mail, which it may read now; returns how many."""
    unread = Mail.objects.filter(recipient_id=leaver.id, read_at=None).order_by("-id")
    count = unread.count()
    if count and successor is not None:
        listed = "\n".join(
            f"- {m.id} {m.mail_type} from {m.from_agent}: {m.subject}" for m in unread[:LISTED]
        )
        post_notice(
            organisation_id=caller.organisation_id,
            recipient=successor,
            subject=f"{leaver.handle} left {count} unread mails",
            body=f"{leaver.handle} was deactivated; its unread mails are yours to read (read_inbox "
            f"with left_by = {leaver.handle} lists them all). Newest first:\n{listed}"
            + (f"\n… and {count - LISTED} more" if count > LISTED else ""),
            now=now,
        )
    return count
