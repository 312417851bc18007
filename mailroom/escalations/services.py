"""Escalations: one step up, waiting for an answer, one thread to the Board (seed 000 §4.4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from core.actions import Action
from core.actors import Actor
from core.decision import Code, Denied, refuse, require
from ledger.services import record
from mailroom import rules
from mailroom.delivery import Letter, post
from mailroom.models import WAITING, Escalation, EscalationState
from mailroom.parties import require_own
from mailroom.refusals import as_rejection
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import BOARD, ESCALATION
from toolbox.caller import Caller


def escalate(
    *,
    caller: Caller,
    subject: str,
    body: str,
    now: datetime,
    contract_ref: str | None = None,
    follows: int | None = None,
) -> dict[str, Any]:
    """Send a problem one step up; with `follows`, pass on or repeat an earlier escalation.

    Raises Denied LEVEL_DENIED for who has no superior agent, CONTACT_DENIED for who may not write
    to its superior, RECIPIENT_INACTIVE for whose own has left (the next above is told), NOT_FOUND
    for a thread or contract that the caller is no party of.
    """
    try:
        allowed = require(rules.can_escalate_to(caller.agent, caller.policy))
    except Denied as refusal:
        if refusal.deny.code is Code.LEVEL_DENIED:
            raise
        raise as_rejection(refusal, caller, "its superior", ESCALATION, now) from refusal
    superior = caller.policy.agents[caller.agent.superior]
    require_own(caller, contract_ref=contract_ref)
    with transaction.atomic():
        earlier = _earlier(caller, follows)
        letter = Letter(
            organisation_id=caller.organisation_id,
            sender=caller.agent,
            recipient=superior,
            sender_name=caller.handle,
            mail_type=ESCALATION,
            subject=subject,
            body=body,
            priority="high",
            reply_to=earlier.mail_id if earlier else None,
            contract_ref=contract_ref,
            route_log=[f"from {caller.actor}", f"allowed: {allowed.rule}"],
        )
        mail_id = post(letter, caller=caller, now=now)
        row = open_escalation(mail_id=mail_id, caller=caller, now=now, earlier=earlier)
    return {"mail_id": mail_id, "escalation_id": str(row.id), "to": superior.handle}


def _earlier(caller: Caller, follows: int | None) -> Escalation | None:
    if follows is None:
        return None
    row = (
        Escalation.objects.select_for_update(of=("self",))
        .filter(id=follows, organisation_id=caller.organisation_id)
        .first()
    )
    if row is None or caller.agent.id not in (row.sender_id, row.recipient_id):
        raise refuse(
            Code.NOT_FOUND,
            "follows: you have no such escalation",
            "name an escalation that you sent or received, or leave follows out",
            rule="follows is the caller's own",
        )
    return row


def open_escalation(
    *, mail_id: str, caller: Caller, now: datetime, earlier: Escalation | None = None
) -> Escalation:
    """Make a delivered mail an escalation that waits for its answer until it is due."""
    superior: Agent | None = caller.policy.agents.get(caller.agent.superior)
    wait = caller.policy.settings[
        "ceo_timeout" if superior and superior.superior == BOARD else "escalation_timeout"
    ]
    row = Escalation.objects.create(
        mail_id=mail_id,
        organisation_id=caller.organisation_id,
        sender_id=caller.agent.id,
        recipient_id=superior.id if superior else None,
        follows=earlier,
        root_id=(earlier.root_id or earlier.id) if earlier else None,
        due_at=now + timedelta(seconds=wait),
    )
    if earlier is not None and earlier.recipient_id == caller.agent.id:
        settle(earlier, EscalationState.PASSED_ON, by=caller, now=now, by_what=mail_id)
    record(
        Action.ESCALATION_OPENED,
        by=caller,
        at=now,
        subject=f"escalation:{row.id}",
        details={
            "mail": mail_id,
            "to": caller.agent.superior,
            "due_at": row.due_at.isoformat(),
        },
    )
    return row


def settle(
    row: Escalation,
    state: EscalationState,
    *,
    by: Actor,
    now: datetime,
    by_what: str,
    reason: str = "",
) -> None:
    """Write down what became of a locked escalation that still waits; one settled stays so.

    `by_what` names the mail or contract that did it.
    """
    if row.state not in WAITING:
        return
    Escalation.objects.filter(id=row.id).update(
        state=state, version=F("version") + 1, answered_at=now, answered_by=by.actor
    )
    record(
        Action(f"escalation.{state}"),
        by=by,
        at=now,
        subject=f"escalation:{row.id}",
        reason=reason,
        details={"by": by_what, "late": row.unanswered_at is not None},
    )
