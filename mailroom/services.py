"""Sending mail; the channels that contracts open; the mail of agents that leave."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.db.models.expressions import RawSQL

from core.actions import Action
from core.actors import Actor
from core.database import planned_for_values, rows_of_array
from core.decision import Denied, Deny
from core.hooks import Hook
from documents.attachments import keep_file
from ledger.services import record
from mailroom import rules
from mailroom.delivery import KeptAttachment, MailDraft, insert_mail, send_system_mail
from mailroom.escalations import answers
from mailroom.escalations import services as escalations
from mailroom.models import ContactGrant, Escalation, Mail
from mailroom.references import require_own
from mailroom.refusals import as_rejection
from mailroom.results import SentMail
from mailroom.rules import Channel
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Party
from orgchart.policy.readership import readable_writers
from orgchart.policy.vocabulary import BOARD, ESCALATION
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller
from toolbox.quoting import one_line
from toolbox.scopes import active_scopes

submissions = Hook[[Caller, MailDraft, str, datetime], None](
    "a report was sent that submits the work of the contract it names"
)
LISTED = 50
"""Unread mails that a successor's system mail names."""


def send_mail(*, caller: Caller, draft: MailDraft, now: datetime) -> SentMail:
    """Send one mail (Spec: mail 19): decide, then insert it with its event in one statement.

    Raises Denied with the rule that refused it; the refusal leaves a rejection, and for a
    violation a system mail in the sender's own inbox.
    """
    known = caller.policy.contacts_of(caller.agent)
    recipient = rules.find_party(draft.to, caller.policy, known)
    if isinstance(recipient, Deny):
        raise as_rejection(Denied(recipient), caller, draft.to, draft.mail_type, now)
    try:
        rule = caller.policy.rule_between(caller.agent, recipient)
        granted = rule is not None and rule.needs_contract
        escalates = draft.mail_type == ESCALATION
        parts = granted or escalates or draft.submits or draft.reply_to or draft.attachments
        with transaction.atomic() if parts else nullcontext():
            channels = _hold_channels(caller, draft) if granted else ()
            route_log = _decide(caller, draft, recipient, channels)
            if draft.attachments:
                draft = replace(draft, attachments=_keep_attachments(caller, draft, now))
            mail_id = insert_mail(
                draft, recipient=recipient, route_log=route_log, caller=caller, now=now
            )
            if escalates:
                escalations.open_escalation(
                    mail_id=mail_id, caller=caller, now=now, earlier=_earlier(caller, draft)
                )
            elif draft.reply_to:
                answers.answer_by_reply(
                    mail_id=draft.reply_to, reply=mail_id, to=recipient, by=caller, now=now
                )
            if draft.submits:
                submissions(caller, draft, mail_id, now)
    except Denied as refusal:
        raise as_rejection(refusal, caller, draft.to, draft.mail_type, now) from refusal
    return {"mail_id": mail_id, "status": "delivered", "created_at": now}


def _keep_attachments(caller: Caller, draft: MailDraft, now: datetime) -> Sequence[KeptAttachment]:
    """The attachments with the digest of what each holds now (Spec: mail 28)."""
    kept = [keep_file(caller, each["path"], now) for each in draft.attachments]
    return [
        {**each, "sha256": file.sha256, "bytes": len(file.content)}
        for each, file in zip(draft.attachments, kept, strict=True)
    ]


def _earlier(caller: Caller, draft: MailDraft) -> Escalation | None:
    """The escalation that an escalation by mail repeats or passes on: the one it replies to."""
    if not draft.reply_to:
        return None
    parties = Q(sender_id=caller.agent.id) | Q(recipient_id=caller.agent.id)
    return Escalation.objects.filter(parties, mail_id=draft.reply_to).first()


def _hold_channels(caller: Caller, draft: MailDraft) -> Sequence[Channel]:
    """Open channels of the named contract, locked against closing until this mail is inserted."""
    if not draft.contract_ref:
        return ()
    grants = ContactGrant.objects.raw(
        "SELECT * FROM mailroom_contactgrant WHERE contract_ref = %s AND organisation_id = %s "
        "AND closed_at IS NULL FOR SHARE",
        [draft.contract_ref, caller.organisation_id],
    )
    return [grant.channel for grant in grants]


def _decide(
    caller: Caller, draft: MailDraft, recipient: Party, channels: Sequence[Channel]
) -> Sequence[str]:
    """Decide about the mail, its attachments and what it refers to; returns its route log.

    Raises Denied.
    """
    policy, sender = caller.policy, caller.agent
    allowed = caller.require(rules.can_mail(sender, recipient, draft.mail_type, policy, channels))
    if draft.submits:
        caller.require(rules.can_submit_by_mail(draft.mail_type, draft.contract_ref))
    if draft.attachments:
        paths = [each["path"] for each in draft.attachments]
        caller.require(rules.can_attach(paths, sender, recipient, policy, active_scopes(caller)))
    if draft.reply_to or (draft.contract_ref and not channels):
        require_own(caller, reply_to=draft.reply_to, contract_ref=draft.contract_ref)
    return [f"from {caller.actor}", f"allowed: {allowed.rule}", f"policy {policy.version}"]


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
    """Close a contract's channels; waits for mails that are being sent through them."""
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


def notify_successor(
    *, caller: Actor, leaver: Agent, successor: Agent | None, now: datetime
) -> int:
    """Send the successor the list of unread mails that it may read now; returns how many."""
    unread = Mail.objects.filter(recipient_id=leaver.id, read_at=None).order_by("-id")
    with planned_for_values():
        is_any_left = unread.exists()
    if not is_any_left:  # a pack takes thousands out of service, most with nothing unread
        return 0
    if successor is not None:
        writers = readable_writers(current_policy(caller.organisation_id), successor)
        of_these = rows_of_array(list(writers), "bigint")
        quoting_these = Q(quoted__contained_by=RawSQL("%s::bigint[]", [list(writers)]))
        unread = unread.filter(Q(sender__in=of_these) | Q(from_agent=BOARD) | quoting_these)
    count = unread.count()
    if count and successor is not None:
        shown = unread[:LISTED]
        listed = "\n".join(
            f"- {m.id} {m.mail_type} from {m.from_agent}: {one_line(m.subject)}" for m in shown
        )
        send_system_mail(
            organisation_id=caller.organisation_id,
            recipient=successor,
            subject=f"{leaver.handle} left {count} unread mails",
            body=f"{leaver.handle} was deactivated; its unread mails are yours to read (read_inbox "
            f"with left_by = {leaver.handle} lists them all). Newest first:\n{listed}"
            + (f"\n… and {count - LISTED} more" if count > LISTED else ""),
            quotes={writer for mail in shown for writer in mail.writers},
            now=now,
        )
    return count
