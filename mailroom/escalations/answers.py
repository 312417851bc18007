"""Answers to escalations: a reply, a contract that names it, a person (Spec: escalation 8)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from core.actors import Person
from core.blank import is_blank
from core.decision import Allow, Code, Denied, refuse, require_version
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from mailroom.delivery import send_as, send_system_mail
from mailroom.escalations.threads import lock_thread_of, settle_thread, version_of
from mailroom.models import Escalation
from mailroom.vocabulary import UNSETTLED
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Party
from orgchart.policy.readership import can_tell
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller
from toolbox.quoting import one_line

ANSWER = "answer"


def answer_by_reply(*, mail_id: str, reply: str, to: Party, by: Caller, now: datetime) -> bool:
    """Settle the thread of an escalation by its recipient's reply, late too.

    A reply answers its sender; one to another agent is an answer only to what the system sent.
    Reading is no answer.
    """
    row = (
        Escalation.objects.filter(mail_id=mail_id, recipient_id=by.agent.id)
        .filter(Q(sender_id=to.id) | Q(mail__sender=None))
        .first()
    )
    return row is not None and settle_thread(row, ANSWER, by=by, now=now, by_what=reply)


def lock_to_answer(*, escalation_id: int, by: Caller) -> Escalation:
    """The escalation that a contract is about to answer; its thread is locked until the end.

    Only its recipient answers it. Raises Denied NOT_FOUND for every other agent,
    INVALID_TRANSITION where it is settled already.
    """
    rows = Escalation.objects.filter(
        id=escalation_id, organisation_id=by.organisation_id, recipient_id=by.agent.id
    )
    row = rows.first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            "answers: you received no such escalation",
            "name an escalation_id that read_mail shows in a mail to you, or leave answers out",
            rule="an escalation is answered by its recipient (spec: escalation 8)",
        )
    lock_thread_of(row)
    row = rows.get()
    if row.state not in UNSETTLED:
        raise _already_settled(row, "leave answers out: the contract can be issued without")
    return row


def answer_by_contract(
    row: Escalation, *, contract_id: str, title: str, assignee: Agent, by: Caller, now: datetime
) -> None:
    """Settle the thread of a locked escalation with the contract just inserted.

    The assignee may be another agent than the sender (Spec: escalation 8); the sender then gets a
    system mail that names the assignee, and the title where its writer may write to the sender.
    """
    settle_thread(row, ANSWER, by=by, now=now, by_what=contract_id)
    policy = current_policy(row.organisation_id)
    sender = policy.by_id.get(row.sender_id)
    if sender is None or not sender.active or sender.id == assignee.id:
        return
    is_told = isinstance(can_tell(policy, by.agent, sender), Allow)
    send_system_mail(
        organisation_id=row.organisation_id,
        recipient=sender,
        subject=f"{by.handle} has answered your escalation with a contract",
        body=f"{contract_id} for {assignee.handle}" + (f": {one_line(title)}" if is_told else ""),
        quotes=[by.agent.id] if is_told else [],
        now=now,
        reply_to=row.own_mail_id,
    )


def answer_as_person(
    *, escalation_id: int, text: str, expected_version: int | None, person: Person, now: datetime
) -> str:
    """Answer for the Board, by a mail to the sender; returns its id.

    It answers all that waits in the thread, so `expected_version` is that of the thread.
    The recipient of the escalation gets a system mail, or the answer itself where the sender is
    deactivated. Raises Denied NOT_YOURS for a person of another group, NOT_FOUND,
    VERSION_MISMATCH, INVALID_TRANSITION where it is settled already, INVALID_PARAMS for an empty
    answer.
    """
    require_deed(person, Deed.ANSWER_ESCALATION)
    if is_blank(text):
        raise refuse(
            Code.INVALID_PARAMS,
            "the answer is empty",
            "write what the sender has to know",
            text="empty",
        )
    with transaction.atomic():
        row = _lock(escalation_id, expected_version, person)
        policy = current_policy(row.organisation_id)
        reader, recipient = _readers(row, policy)
        mail_id = send_as(
            caller=person,
            recipient=reader,
            mail_type="info",
            subject=f"Re: {row.mail.subject}",
            body=text,
            priority="high",
            contract_ref=row.mail.contract_ref or "",
            reply_to=row.mail_id,
            now=now,
            rule="the Board answers an escalation (spec: people 21)",
        )
        record_intervention(
            person,
            deed=Deed.ANSWER_ESCALATION,
            subject=f"escalation:{row.id}",
            trigger_condition=f"escalation {row.state}",
            action_taken="answer_escalation",
            reason=text,
            now=now,
        )
        settle_thread(row, ANSWER, by=person, now=now, by_what=mail_id, reason=text[:500])
        if recipient is not None:
            send_system_mail(
                organisation_id=row.organisation_id,
                recipient=recipient,
                subject=f"The Board has answered {row.sender.handle}'s escalation",
                body=f"{one_line(row.mail.subject)}\n\nThe Board: {text}",
                quotes=row.mail.writers,
                now=now,
                reply_to=row.mail_id,
            )
    return mail_id


def _lock(escalation_id: int, expected_version: int | None, person: Person) -> Escalation:
    rows = Escalation.objects.select_related("mail", "sender")
    rows = rows.filter(id=escalation_id, organisation_id=person.organisation_id)
    row = rows.first()
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such escalation", "look at the list again")
    lock_thread_of(row)
    row = rows.get()
    if row.state not in UNSETTLED:
        raise _already_settled(row, "look at its thread: the answer is there")
    require_version(
        f"escalation {row.id}",
        "go back, read what happened, and answer again",
        expected=expected_version,
        current=version_of(row),
    )
    return row


def _readers(row: Escalation, policy: Policy) -> tuple[Agent, Agent | None]:
    """Who gets the Board's answer, and who else gets a system mail about it."""
    chain = [policy.by_id.get(row.sender_id), policy.by_id.get(row.recipient_id or 0)]
    active = [agent for agent in chain if agent is not None and agent.active]
    if not active:
        raise refuse(
            Code.RECIPIENT_INACTIVE,
            "its sender and its recipient are both deactivated",
            "issue a contract to the top agent instead",
            rule="recipient is active (spec: mail 21)",
        )
    return active[0], active[1] if len(active) > 1 else None


def _already_settled(row: Escalation, next_action: str) -> Denied:
    return refuse(
        Code.INVALID_TRANSITION,
        f"escalation {row.id} is {row.state.replace('_', ' ')} by {row.answered_by}",
        next_action,
        rule="an escalation is answered once",
    )
