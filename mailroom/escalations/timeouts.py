"""Escalations without an answer (Spec: escalation 11): notify the sender, the CEO, the Board."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from core.actions import Action
from core.actors import System
from core.events import Event
from core.language import gettext_noop
from core.wording import Wording
from ledger.services import record
from mailroom.delivery import send_system_mail
from mailroom.escalations.following import SYSTEM, pass_on_to_superior, threads_astray
from mailroom.escalations.models import OPEN_THREADS
from mailroom.escalations.threads import insert_in_thread, rows_of, save_step
from mailroom.models import Escalation
from mailroom.outgoing import outbox
from mailroom.vocabulary import UNSETTLED, EscalationState
from orgchart.models import Organisation
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.way_up import tool_to_escalate
from orgchart.policy_cache import current_policy
from toolbox.quoting import as_lines, one_line
from toolbox.scheduler import answers_of_each, sweep

UNANSWERED = gettext_noop("%(organisation)s: an escalation has no answer")
BEFORE_THE_CEO = 3
"""Unanswered escalations of one thread after which the CEO is notified (Spec: escalation 12)."""


def sweep_due(now: datetime) -> int:
    """Let escalations follow their sender to another superior, time out every one that is due, tell
    the CEO of those that a superior left unanswered, and send the Board the notices that had no
    channel before; returns how many.

    Threads are taken by their first escalation, which every change of a thread locks.
    """
    followed = sweep(threads_astray(), lambda first: _follow(first, now), of="organisation")
    timed_out: list[int] = []
    due = Escalation.objects.filter(state=EscalationState.OPEN, due_at__lte=now)
    threads = due.annotate(of=Coalesce("first_id", "id")).values("of")
    heads = Escalation.objects.filter(first=None, state__in=UNSETTLED, id__in=threads)
    sweep(
        heads.order_by(*OPEN_THREADS),
        lambda first: timed_out.append(_time_out_thread(first, now)),
        of="organisation",
    )
    return (
        followed
        + sum(timed_out)
        + sweep(_left_behind(), lambda first: _notify_ceo_of_leaver(first, now), of="organisation")
        + _send_missing_notices(now)
    )


def _follow(first: Escalation, now: datetime) -> None:
    policy = current_policy(first.organisation_id)
    if pass_on_to_superior(first, policy, now) is None:
        _notify_board(first, first, policy, now)


def _left_behind() -> QuerySet[Escalation]:
    """Unanswered threads whose superior left after their time was over, and that no other knows of.

    Their sender cannot escalate a third time to it (Spec: escalation 16).
    """
    rows = Escalation.objects.filter(first=None, state=EscalationState.UNANSWERED)
    untold = rows.filter(told_ceo_at=None, told_board_at=None, board_waits_since=None)
    return untold.filter(recipient__active=False).order_by(*OPEN_THREADS)


def _notify_ceo_of_leaver(first: Escalation, now: datetime) -> None:
    policy = current_policy(first.organisation_id)
    row = _unanswered(first).last()
    if row is not None:
        _notify_above(row, first, policy, now)


def _send_missing_notices(now: datetime) -> int:
    """Tell the Board of unanswered threads that it got no notice of, where it has a channel now."""
    rows = Escalation.objects.filter(
        first=None, state__in=UNSETTLED, board_waits_since__lt=now
    ).order_by("organisation_id")
    channels = answers_of_each(
        Organisation.objects.filter(id__in=rows.values("organisation_id")),
        lambda organisation: outbox.channels_of(current_policy(organisation.id)),
    )
    missing = rows.filter(organisation__in=[one for one, found in channels.items() if found])
    return sweep(missing, lambda first: _notify_board_late(first, now), of="organisation")


def _notify_board_late(first: Escalation, now: datetime) -> None:
    first.board_waits_since = None
    first.save(update_fields=["board_waits_since"])
    _notify_board(first, first, current_policy(first.organisation_id), now)


def _time_out_thread(first: Escalation, now: datetime) -> int:
    """Time out what is due of a locked thread; returns how many."""
    due = list(rows_of(first).filter(state=EscalationState.OPEN, due_at__lte=now))
    for row in due:
        _time_out(row, first, now)
    return len(due)


def _time_out(row: Escalation, first: Escalation, now: datetime) -> None:
    policy = current_policy(row.organisation_id)
    system = System(name=SYSTEM, organisation_id=row.organisation_id)
    before = row.state
    row.time_out(at=now)
    event = Event.by(
        system,
        Action.ESCALATION_UNANSWERED,
        at=now,
        subject=f"escalation:{row.id}",
        details={"due_at": row.due_at.isoformat(), "mail": row.mail_id},
    )
    save_step(row, before, event)
    sender, recipient = policy.by_id.get(row.sender_id), policy.by_id.get(row.recipient_id or 0)
    _notify_sender(row, sender, recipient, policy, now)
    if _top_above(recipient, policy) is None or _is_stuck(first, recipient):
        _notify_above(row, first, policy, now)


def _top_above(recipient: Agent | None, policy: Policy) -> Agent | None:
    """The CEO of an agent that left an escalation unanswered; None where only the Board is above.

    Of groups whose leaders report to the Board no leader is told what another's member escalates.
    """
    above = policy.chain_above(recipient) if recipient else ()
    return above[-1] if above else None


def _notify_above(row: Escalation, first: Escalation, policy: Policy, now: datetime) -> None:
    top = _top_above(policy.by_id.get(row.recipient_id or 0), policy)
    if top is None or top.id == row.sender_id:
        _notify_board(row, first, policy, now)
    else:
        _notify_ceo(row, first, top, policy, now)


def _is_stuck(first: Escalation, recipient: Agent | None) -> bool:
    """Whether the CEO must know: three are unanswered, or the superior left.

    While a notice of the thread waits for the CEO's answer there is no other one. After the answer
    the count begins anew: the superior may be silent again (Spec: escalation 12).
    """
    notices = Escalation.objects.filter(follows__in=rows_of(first), mail__sender=None)
    if notices.filter(state__in=UNSETTLED).exists():
        return False
    if recipient is None or not recipient.active:
        return True
    return _unanswered(first).count() >= BEFORE_THE_CEO


def _unanswered(first: Escalation) -> QuerySet[Escalation]:
    """What is unanswered of a thread since the CEO was notified of it, if it ever was."""
    rows = rows_of(first).filter(state=EscalationState.UNANSWERED)
    if first.told_ceo_at is None:
        return rows
    return rows.filter(unanswered_at__gt=first.told_ceo_at)


def _notify_sender(
    row: Escalation,
    sender: Agent | None,
    recipient: Agent | None,
    policy: Policy,
    now: datetime,
) -> None:
    if sender is None or not sender.active:
        return
    who = recipient.handle if recipient else "the Board"
    send_system_mail(
        organisation_id=row.organisation_id,
        recipient=sender,
        subject=f"No answer from {who} to your escalation",
        body=f"{who} has not answered {row.own_mail_id} in time. "
        f"{_way_to_repeat(row, sender, policy)}",
        quotes=[],
        now=now,
        reply_to=row.own_mail_id,
    )


def _way_to_repeat(row: Escalation, sender: Agent, policy: Policy) -> str:
    """How this sender escalates again, with a tool that it has."""
    match tool_to_escalate(sender, policy):
        case "escalate":
            return f"You may escalate again: call escalate with follows={row.id}."
        case "send_mail":
            return (
                f"You may escalate again: send {sender.superior} a mail of type escalation with "
                f"reply_to={row.own_mail_id}."
            )
        case _:
            return f"{sender.superior}, the next above, has been told that you need a superior."


def _notify_ceo(
    row: Escalation, first: Escalation, top: Agent, policy: Policy, now: datetime
) -> None:
    """Send the CEO a system mail about a thread, which waits for an answer as escalations do."""
    system = System(name=SYSTEM, organisation_id=row.organisation_id)
    sender, own = policy.by_id[row.sender_id], first.origin
    count = _unanswered(first).count()
    times = "once" if count == 1 else f"{count} times"
    mail_id = send_system_mail(
        organisation_id=row.organisation_id,
        recipient=top,
        subject=f"{sender.handle} has escalated {times} without an answer",
        body=(
            f"{sender.handle} -> {row.recipient}: {one_line(own.mail.subject)}\n\n"
            f"{as_lines(own.mail.body)}\n\n"
            f"The last of them is {row.mail_id}. Answer this mail with reply_to, or with a "
            "contract that names its escalation_id (read_mail says it) in answers."
        ),
        quotes=own.mail.writers,
        reply_to=row.mail_id,
        now=now,
        system=system.name,
    )
    insert_in_thread(
        Escalation(
            mail_id=mail_id,
            organisation_id=row.organisation_id,
            sender_id=row.sender_id,
            recipient_id=top.id,
            due_at=now + timedelta(seconds=policy.settings["ceo_timeout"]),
        ),
        follows=row,
        root_id=row.root_id or row.id,
    )
    first.told_ceo_at = now
    first.save(update_fields=["told_ceo_at"])
    record(
        Action.ESCALATION_CEO_TOLD,
        by=system,
        at=now,
        subject=f"escalation:{first.id}",
        for_agent_id=top.id,
        details={"mail": mail_id},
    )


def _notify_board(row: Escalation, first: Escalation, policy: Policy, now: datetime) -> None:
    """Send the Board a notice, once for a thread; without a channel it waits until there is one."""
    if first.told_board_at is not None:
        return
    system = System(name=SYSTEM, organisation_id=row.organisation_id)
    if not outbox.channels_of(policy):
        first.board_waits_since = now
        first.save(update_fields=["board_waits_since"])
        record(
            Action.ESCALATION_BOARD_NOT_TOLD,
            by=system,
            at=now,
            subject=f"escalation:{first.id}",
            reason="neither board_webhook nor board_email is set",
            details={"mail": row.mail_id},
        )
        return
    sender = policy.by_id.get(row.sender_id)
    outbox.notify_board(
        policy=policy,
        event=Action.ESCALATION_UNANSWERED,
        subject=Wording(UNANSWERED, {"organisation": policy.organisation}),
        body=f"{first.origin.mail.subject}\n\n{first.origin.mail.body}",
        data={
            "escalation": str(first.id),
            "mail": row.mail_id,
            "from": sender.handle if sender else "",
        },
        caller=system,
        now=now,
    )
    first.told_board_at = now
    first.save(update_fields=["told_board_at"])
