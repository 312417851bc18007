"""What a structural violation leaves although its call is refused (Spec: constitution 14)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actions import Action
from core.actors import System
from core.decision import Denied, Deny
from core.events import Event
from core.language import gettext_noop
from core.wording import Wording
from governance.cases import records, store
from governance.cases.facts import Next
from governance.cases.models import Case, Violation
from governance.cases.refusals import fault_of
from governance.cases.rules import after_violation
from governance.cases.vocabulary import Fault, Signal
from ledger.services import insert_event, record
from mailroom.outgoing.outbox import notify_board
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller


def as_violation(refusal: Denied, caller: Caller, case_id: str, now: datetime) -> Denied:
    """The same refusal; if the table of refusals calls it a violation, the round is aborted.

    The door calls the function it carries when the call's own transaction has been rolled back.
    """
    fault = fault_of(refusal.deny)
    if fault is None:
        return refusal
    return Denied(
        refusal.deny,
        lambda event: record_violation(
            deny=refusal.deny, fault=fault, event=event, caller=caller, case_id=case_id, now=now
        ),
    )


def record_violation(
    *, deny: Deny, fault: Fault, event: Event, caller: Caller, case_id: str, now: datetime
) -> None:
    """Abort the running round, pause the case, keep the violation and notify people."""
    with transaction.atomic():
        insert_event(event)
        row = store.find(case_id, caller.organisation_id, lock=True)
        to = after_violation(records.position_of(row))
        Violation.objects.create(
            organisation_id=caller.organisation_id,
            case=row,
            round=row.round,
            stage=row.stage,
            agent_id=caller.agent.id,
            agent_name=caller.handle,
            offices=sorted(caller.role.offices),
            fault=fault.value,
            code=deny.code.value,
            reason=deny.message,
            aborted=to is not None,
            at=now,
        )
        details = {"fault": fault.value, "code": deny.code.value, "rule": deny.rule}
        if to is None:
            subject = f"case:{row.id}"
            record(Action.CASE_VIOLATED, by=caller, at=now, subject=subject, details=details)
        else:
            violated = Event.by(
                caller,
                Action.CASE_VIOLATED,
                at=now,
                subject=f"case:{row.id}",
                reason=deny.message,
                details=store.move_details(row, to, **details),
            )
            store.advance(row, to, violated, policy=caller.policy, caller=caller, now=now)
            notify_if_paused(row, to, now)


def notify_if_paused(row: Case, to: Next, now: datetime) -> None:
    """Notify people through the outbox that a case waits for them (Spec: constitution 15)."""
    signal = to.at.paused_by
    if signal is None:
        return
    policy = current_policy(row.organisation_id)
    notify_board(
        policy=policy,
        event="case.paused",
        subject=Wording(PAUSED_CASE, {"organisation": policy.organisation, "signal": str(signal)}),
        body=(f"{row.id}: {row.title}", Wording(PAUSED[signal], {})),
        data={"case": row.id, "trigger_condition": signal.value, "round": row.round},
        caller=System(name="cases", organisation_id=row.organisation_id),
        now=now,
    )


PAUSED_CASE = gettext_noop("%(organisation)s: a case is paused: %(signal)s")
PAUSED = {
    Signal.NON_VERIFIABLE: gettext_noop("The Analyst says that the request cannot be verified."),
    Signal.ITERATION_OVERFLOW: gettext_noop("The case has used up its rounds."),
    Signal.STRUCTURAL_VIOLATION: gettext_noop(
        "An office acted against the constitution; the round is aborted."
    ),
    Signal.EVIDENCE_UNAVAILABLE: gettext_noop("The Tester could not obtain evidence."),
}
