"""Escalations: one step up, waiting for an answer, one thread to the Board (Spec: escalation 1)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from core.actions import Action
from core.database import needs_transaction
from core.decision import Code, Denied, refuse
from ledger.services import record
from mailroom import rules
from mailroom.delivery import MailDraft, insert_mail
from mailroom.escalations.threads import insert_in_thread, rows_of, settle_thread
from mailroom.escalations.waits import seconds_to_answer
from mailroom.models import Escalation
from mailroom.references import require_own
from mailroom.refusals import as_rejection
from mailroom.results import SentEscalation
from mailroom.vocabulary import UNSETTLED
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import ESCALATION
from toolbox.caller import Caller


def escalate(
    *,
    caller: Caller,
    subject: str,
    body: str,
    now: datetime,
    contract_ref: str | None = None,
    follows: int | None = None,
) -> SentEscalation:
    """Send a problem one step up; with `follows`, pass on or repeat an earlier escalation.

    Raises Denied LEVEL_DENIED where the caller has no superior agent, CONTACT_DENIED where it may
    not write to its superior, RECIPIENT_INACTIVE where its superior is deactivated (the next above
    gets a system mail), NOT_FOUND for a thread or contract that the caller is no party of.
    """
    try:
        allowed = caller.require(rules.can_escalate_to(caller.agent, caller.policy))
    except Denied as refusal:
        if refusal.deny.code is Code.LEVEL_DENIED:
            raise
        raise as_rejection(refusal, caller, "its superior", ESCALATION, now) from refusal
    superior = caller.policy.agents[caller.agent.superior]
    require_own(caller, contract_ref=contract_ref)
    with transaction.atomic():
        earlier = _find_earlier(caller, follows)
        draft = MailDraft(
            to=superior.handle,
            mail_type=ESCALATION,
            subject=subject,
            body=body,
            priority="high",
            reply_to=earlier.own_mail_id if earlier else None,
            contract_ref=contract_ref,
        )
        route_log = [f"from {caller.actor}", f"allowed: {allowed.rule}"]
        mail_id = insert_mail(
            draft, recipient=superior, route_log=route_log, caller=caller, now=now
        )
        row = open_escalation(mail_id=mail_id, caller=caller, now=now, earlier=earlier)
    return {"mail_id": mail_id, "escalation_id": str(row.id), "to": superior.handle}


def _find_earlier(caller: Caller, follows: int | None) -> Escalation | None:
    if follows is None:
        return None
    row = Escalation.objects.filter(id=follows, organisation_id=caller.organisation_id).first()
    if row is None or caller.agent.id not in (row.sender_id, row.recipient_id):
        raise refuse(
            Code.NOT_FOUND,
            "follows: you have no such escalation",
            "name an escalation that you sent or received, or leave follows out",
            rule="follows is the caller's own",
        )
    return row


@needs_transaction
def open_escalation(
    *, mail_id: str, caller: Caller, now: datetime, earlier: Escalation | None = None
) -> Escalation:
    """Insert the escalation that a delivered mail is; it waits for an answer until it is due.

    It joins the open thread to the superior, if there is one (Spec: escalation 10). An `earlier`
    one that the caller received and that waits for its answer is passed on with it, while its
    sender reports to the caller (Spec: escalation 16). Raises Denied QUOTA_EXCEEDED where too many
    of the thread wait.
    """
    superior: Agent | None = caller.policy.agents.get(caller.agent.superior)
    wait = seconds_to_answer(superior, caller.policy)
    passes_on = (
        earlier is not None
        and earlier.recipient_id == caller.agent.id
        and earlier.state in UNSETTLED
        and caller.policy.by_id[earlier.sender_id].superior == caller.handle
    )
    row = insert_in_thread(
        Escalation(
            mail_id=mail_id,
            organisation_id=caller.organisation_id,
            sender_id=caller.agent.id,
            recipient_id=superior.id if superior else None,
            due_at=now + timedelta(seconds=wait),
        ),
        follows=earlier,
        root_id=(earlier.root_id or earlier.id) if earlier and passes_on else None,
    )
    waiting = rows_of(row.first or row).filter(state__in=UNSETTLED).count()
    caller.require(rules.can_wait_with(waiting, caller.agent))
    if earlier is not None and passes_on:
        settle_thread(earlier, "pass_on", by=caller, now=now, by_what=mail_id)
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
