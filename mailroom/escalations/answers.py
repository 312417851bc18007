"""Answers to escalations: a reply, a contract that names it, a person (seed 000 §4.4)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actors import Person
from core.decision import Code, Denied, refuse
from core.deeds import Deed, require_deed
from mailroom.delivery import deliver, post_notice
from mailroom.escalations.services import settle
from mailroom.models import WAITING, Escalation, EscalationState
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from toolbox.caller import Caller

ANSWERED = EscalationState.ANSWERED


def answer_by_reply(*, mail_id: str, reply: str, by: Caller, now: datetime) -> bool:
    """A reply by its recipient answers an escalation, late too; being read is no answer."""
    row = (
        Escalation.objects.select_for_update(of=("self",))
        .filter(mail_id=mail_id, recipient_id=by.agent.id, state__in=WAITING)
        .first()
    )
    if row is None:
        return False
    settle(row, ANSWERED, by=by, now=now, by_what=reply)
    return True


def claim(*, escalation_id: int, by: Caller) -> Escalation:
    """The escalation that a contract is about to answer, held until the transaction ends.

    Only its recipient answers it. Raises Denied NOT_FOUND for anybody else, whatever exists,
    INVALID_TRANSITION where it is settled already.
    """
    row = (
        Escalation.objects.select_for_update(of=("self",))
        .filter(id=escalation_id, organisation_id=by.organisation_id, recipient_id=by.agent.id)
        .first()
    )
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            "answers: you received no such escalation",
            "name an escalation_id that read_mail shows in a mail to you, or leave answers out",
            rule="an escalation is answered by its recipient (seed 000 §4.4)",
        )
    if row.state not in WAITING:
        raise _settled(row, "leave answers out: the contract can be issued without")
    return row


def answer_by_contract(
    row: Escalation, *, contract_id: str, title: str, assignee: Agent, by: Caller, now: datetime
) -> None:
    """Settle a claimed escalation with the contract just written, in its transaction.

    The work may be anybody's whom the recipient may order (seed 000 §4.4: another manager, say);
    a sender that is not the one is told whose it is.
    """
    settle(row, ANSWERED, by=by, now=now, by_what=contract_id)
    sender = current_policy(row.organisation_id).by_id.get(row.sender_id)
    if sender is None or not sender.active or sender.id == assignee.id:
        return
    post_notice(
        organisation_id=row.organisation_id,
        recipient=sender,
        subject=f"{by.handle} has answered your escalation with a contract",
        body=f"{contract_id} for {assignee.handle}: {title}",
        now=now,
        reply_to=row.mail_id,
    )


def answer_as_person(
    *, escalation_id: int, text: str, expected_version: int | None, person: Person, now: datetime
) -> str:
    """A person of the Board answers: a mail from the Board to the sender; returns its id.

    Whoever was passed over is told too; a sender that has left is spared it, and the one above
    it reads the answer. Raises Denied NOT_YOURS for a person of another group, NOT_FOUND,
    VERSION_MISMATCH, INVALID_TRANSITION where it is settled already.
    """
    require_deed(person, Deed.ANSWER_ESCALATION)
    with transaction.atomic():
        row = _held(escalation_id, expected_version, person)
        policy = current_policy(row.organisation_id)
        reader, passed_over = _readers(row, policy)
        mail_id = deliver(
            caller=person,
            recipient=reader,
            mail_type="info",
            subject=f"Re: {row.mail.subject}",
            body=text,
            priority="high",
            contract_ref=row.mail.contract_ref or "",
            reply_to=row.mail_id,
            now=now,
            rule="the Board answers an escalation (seed 000 §4.4)",
        )
        settle(row, ANSWERED, by=person, now=now, by_what=mail_id, reason=text[:500])
        if passed_over is not None:
            post_notice(
                organisation_id=row.organisation_id,
                recipient=passed_over,
                subject=f"The Board has answered {row.sender.handle}'s escalation",
                body=f"{row.mail.subject}\n\nThe Board: {text}",
                now=now,
                reply_to=row.mail_id,
            )
    return mail_id


def _held(escalation_id: int, expected_version: int | None, person: Person) -> Escalation:
    row = (
        Escalation.objects.select_for_update(of=("self",))
        .filter(id=escalation_id, organisation_id=person.organisation_id)
        .select_related("mail", "sender")
        .first()
    )
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such escalation", "look at the list again")
    if row.state not in WAITING:
        raise _settled(row, "look at its thread: the answer is there")
    if expected_version not in (None, row.version):
        raise refuse(
            Code.VERSION_MISMATCH,
            f"the escalation changed since it was shown: version {row.version}",
            "go back, read what happened, and answer again",
            rule="an answer names the version it is about",
        )
    return row


def _readers(row: Escalation, policy: Policy) -> tuple[Agent, Agent | None]:
    """Who reads the Board's answer, and who is told beside."""
    chain = [policy.by_id.get(row.sender_id), policy.by_id.get(row.recipient_id or 0)]
    active = [agent for agent in chain if agent is not None and agent.active]
    if not active:
        raise refuse(
            Code.RECIPIENT_INACTIVE,
            "both who sent it and who received it are deactivated",
            "issue a contract to the top agent instead",
            rule="recipient is active (seed 000 §4.5)",
        )
    return active[0], active[1] if len(active) > 1 else None


def _settled(row: Escalation, next_action: str) -> Denied:
    return refuse(
        Code.INVALID_TRANSITION,
        f"escalation {row.id} is {row.state.replace('_', ' ')} by {row.answered_by}",
        next_action,
        rule="an escalation is answered once",
    )
