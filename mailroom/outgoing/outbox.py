"""Notices to people outside: rows, sent until they arrive or are given up."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext, override

from core.actions import Action
from core.actors import Actor, Person, System
from core.control_characters import show_in_text
from core.database import hold_lock, needs_transaction, planned_for_values, rows_of_array
from core.decision import Code, Denied, refuse, require_version
from core.events import Event
from core.machines import Swap, swap
from core.people import require_still
from core.permissions import Deed, require_deed
from core.wording import Part, Parts, as_json, in_english, in_language
from ledger.services import record
from ledger.sql import event_cte
from mailroom.models import OutgoingNotice
from mailroom.outgoing import smtp, webhook
from mailroom.vocabulary import NoticeState
from orgchart.models import Organisation
from orgchart.policy.compiled import Policy
from orgchart.policy_cache import current_policy
from toolbox.scheduler import act_on_each, answers_of_each

log = structlog.get_logger(__name__)

CHANNELS = {"webhook": "board_webhook", "email": "board_email"}
"""Each channel, and the organisation's setting with its address."""
STEP_ACTIONS = {
    NoticeState.SENT: Action.NOTICE_SENT,
    NoticeState.DEAD: Action.NOTICE_DEAD,
    NoticeState.PENDING: Action.NOTICE_RESENT,
}
ATTEMPTS = 12
FIRST_WAIT = 5.0
LONGEST_WAIT = 6 * 3600.0
CLAIMED_FOR = timedelta(seconds=60)
"""How long a sender may take; after this time another one may claim the notice."""
AT_ONCE = {"webhook": 50, "email": 3}
"""Notices of a channel that are sent at once: a slow receiver takes the time of no other.

Of e-mails few: the server is one for all, and takes few sessions of one sender.
"""
LOOK_AGAIN = 1.0
"""Seconds after which a run looks for what has become due, however long receivers take."""
SLOW, LEFT_ALONE = timedelta(seconds=5), timedelta(seconds=60)
"""After a failed attempt longer than SLOW, the receiver gets no other attempt for LEFT_ALONE."""
MOST_RESENT = 1000
"""Notices that a person starts again at once: a second or two."""
BUDGET = 20.0
"""Seconds after which a run leaves the rest to the next, so that no receiver delays other jobs."""


def channels_of(policy: Policy) -> dict[str, str]:
    """The channels to an organisation's Board and their addresses; empty where none is set."""
    places = {name: str(policy.settings[setting]) for name, setting in CHANNELS.items()}
    return {name: place for name, place in places.items() if place}


@needs_transaction
def notify_board(
    *,
    policy: Policy,
    event: str,
    subject: Part,
    body: Parts,
    data: Mapping[str, Any],
    caller: Actor,
    now: datetime,
) -> int:
    """Insert a notice to the Board for each channel; returns how many.

    Webhooks and the ledger get the English text, an e-mail the installation's language.
    """
    event_id = str(uuid.uuid4())
    texts = {"subject": str(subject), "body": in_english(body)}
    payload = {
        "type": event,
        "timestamp": now.isoformat(),
        "data": {"organisation": policy.organisation, **texts, **data},
    }
    rows = [
        OutgoingNotice(
            organisation_id=policy.organisation_id,
            event_id=event_id,
            channel=channel,
            target=target,
            payload=payload,
            wording={"subject": as_json(subject), "body": as_json(body)},
            due_at=now,
            created_at=now,
        )
        for channel, target in channels_of(policy).items()
    ]
    OutgoingNotice.objects.bulk_create(rows)
    record(
        Action.NOTICE_WRITTEN,
        by=caller,
        at=now,
        subject=f"notice:{event_id}",
        reason=texts["subject"],
        details={"event": event, "channels": [row.channel for row in rows]},
    )
    return len(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What became of sending a notice once; `no_session` where the mail server gave it none.

    `pause` is how long the receiver is left alone then; `is_gone` where it wants no other attempt.
    """

    problem: str = ""
    pause: timedelta = timedelta()
    is_gone: bool = False
    no_session: bool = False


def send_due(now: datetime) -> int:
    """Send what is due. Each row is claimed first, sent outside any transaction, then saved.

    Receivers may be slow, so each is waited for in a thread that asks the database for nothing, and
    each that is done makes room for the next of its channel (Spec: escalation 18). Every claim and
    result is saved with the time of that moment.
    """
    begun, handled, is_in_time = time.monotonic(), 0, True
    under_way: dict[OutgoingNotice, Future[Attempt]] = {}

    def by_now() -> datetime:
        return now + timedelta(seconds=time.monotonic() - begun)

    def settle(row: OutgoingNotice) -> bool:
        return _settle(row, under_way.pop(row).result(), by_now())

    with ThreadPoolExecutor(sum(AT_ONCE.values())) as senders:
        while True:
            for channel in CHANNELS if is_in_time else ():
                claimed = _claim(channel, by_now(), under_way)
                under_way |= answers_of_each(claimed, partial(_begin, senders))
            if not under_way:
                return handled
            wait(under_way.values(), timeout=LOOK_AGAIN, return_when=FIRST_COMPLETED)
            handled += act_on_each(_over(under_way), settle)
            is_in_time = time.monotonic() - begun <= BUDGET


def _over(under_way: Mapping[OutgoingNotice, Future[Attempt]]) -> list[OutgoingNotice]:
    return [row for row, attempt in under_way.items() if attempt.done()]


def _claim(
    channel: str, now: datetime, under_way: Collection[OutgoingNotice] = ()
) -> list[OutgoingNotice]:
    """Take due notices of a channel: until CLAIMED_FOR is over no other sender takes them.

    As many as there is room for, next to those under way. One of each organisation, in no order: it
    does not wait for receivers of others, nor for what they had due before (Spec: escalation 18).
    """
    busy = [row.organisation_id for row in under_way if row.channel == channel]
    room = AT_ONCE[channel] - len(busy)
    if not room:
        return []
    with planned_for_values(), transaction.atomic():
        due = OutgoingNotice.objects.filter(
            channel=channel, state=NoticeState.PENDING, due_at__lte=now
        )
        # Each organisation's by an index, before any is taken: one statement for both would sort
        # or join all that is due, and each claim would cost what one organisation has piled up.
        own = due.filter(organisation=OuterRef("pk")).order_by("due_at").values("pk")
        idle = Organisation.objects.exclude(pk__in=rows_of_array(busy, "bigint"))
        firsts = idle.annotate(first=Subquery(own[:1])).exclude(first=None)
        ids = list(firsts.order_by("pk").values_list("first", flat=True))
        found = due.filter(pk__in=rows_of_array(ids, "bigint")).order_by("?")
        rows = list(found.select_for_update(skip_locked=True)[:room])
        for row in rows:
            row.attempts += 1
            row.version += 1
            row.due_at = now + CLAIMED_FOR
        OutgoingNotice.objects.bulk_update(rows, ["attempts", "version", "due_at"])
    return rows


def _begin(senders: ThreadPoolExecutor, row: OutgoingNotice) -> Future[Attempt]:
    """Let the notice go where its channel leads now, in a thread; it may lead nowhere.

    An address that was replaced gets none of what waited for another attempt (Spec: clocks 4).
    """
    policy = current_policy(row.organisation_id)
    address = channels_of(policy).get(row.channel, "")
    row.target = address or row.target
    if address:
        return senders.submit(_attempt, row, policy)
    return senders.submit(Attempt, problem=f"{CHANNELS[row.channel]} is not set any more")


def _settle(row: OutgoingNotice, attempt: Attempt, now: datetime) -> bool:
    """Save the end of an attempt; False where another sender has taken the notice over since."""
    problem = attempt.problem
    if problem and attempt.pause:
        _leave_alone(row, now + attempt.pause, with_all_others=attempt.no_session)
    if not problem:
        row.mark_sent(at=now)
    elif row.attempts >= ATTEMPTS or attempt.is_gone:
        row.give_up(at=now)
    else:
        wait = timedelta(seconds=wait_after(row.attempts))
        row.due_at = now + max(wait, attempt.pause)
    row.last_problem = problem
    system = System(name="notices", organisation_id=row.organisation_id)
    if row.state == NoticeState.PENDING:
        return swap(_change(row))
    details = {"channel": row.channel, "attempts": row.attempts}
    return _save_step(row, NoticeState.PENDING, system, problem, now, details)


def _attempt(row: OutgoingNotice, policy: Policy) -> Attempt:
    """Send the notice once. It asks the database for nothing: it has a thread of its own."""
    begun = time.monotonic()
    failure = _failure(row, policy)
    if failure is None:
        return Attempt()
    is_slow = timedelta(seconds=time.monotonic() - begun) > SLOW
    failed = Attempt(
        problem=f"{type(failure).__name__}: {failure}"[:500],
        pause=LEFT_ALONE if is_slow else timedelta(),
        no_session=isinstance(failure, smtp.NoSession),
    )
    if isinstance(failure, webhook.NoticeRefused):
        pause = max(failed.pause, failure.pause)
        return replace(failed, pause=pause, is_gone=failure.is_gone)
    return failed


def _failure(row: OutgoingNotice, policy: Policy) -> Exception | None:
    try:
        if row.channel == "webhook":
            webhook.send(row, policy)
        else:
            _send_email(row)
    except Exception as failure:  # noqa: BLE001  after any failure it is sent again
        return failure
    return None


def _leave_alone(row: OutgoingNotice, until: datetime, *, with_all_others: bool) -> None:
    """Let the other notices of a receiver wait: each would take the time of all organisations.

    The mail server is one for the e-mails of all of them.
    """
    waiting = OutgoingNotice.objects.filter(
        channel=row.channel, state=NoticeState.PENDING, due_at__lt=until
    )
    if not with_all_others:
        waiting = waiting.filter(organisation_id=row.organisation_id)
    with planned_for_values():
        waiting.update(due_at=until)


def _change(row: OutgoingNotice, before: NoticeState | None = None) -> Swap:
    return Swap(
        model=OutgoingNotice,
        key=row.id,
        version=row.version,
        state=None if before is None else ("state", before, row.state),
        values={
            "attempts": row.attempts,
            "target": row.target,
            "due_at": row.due_at,
            "settled_at": row.settled_at,
            "last_problem": row.last_problem,
        },
    )


def _save_step(
    row: OutgoingNotice,
    before: NoticeState,
    by: Actor,
    reason: str,
    now: datetime,
    details: Mapping[str, Any],
) -> bool:
    """Save the step that a notice has just taken, with its event; False if it changed meanwhile."""
    event = Event.by(
        by,
        STEP_ACTIONS[NoticeState(row.state)],
        at=now,
        subject=f"notice:{row.event_id}",
        reason=reason,
        details=details,
    )
    return swap(_change(row, before), [event_cte(event)])


def wait_after(attempts: int) -> float:
    """Seconds until the next attempt: doubling, with jitter so that many do not come at once."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (attempts - 1))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def _send_email(row: OutgoingNotice) -> None:
    with override(settings.NEXUS_LANGUAGE):
        said = {part: in_language(kept, gettext) for part, kept in row.wording.items()}
        where = gettext("What waits for you: %(address)s") % {
            "address": f"{settings.PUBLIC_URL}/admin/"
        }
    data = row.payload["data"] | said
    EmailMessage(
        subject=_as_subject(str(data["subject"])),
        body=f"{where}\n\n{show_in_text(str(data['body']))}",  # above what an agent wrote
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[row.target],
        headers={"Message-ID": f"<{row.event_id}@nexus>"},
    ).send()


def _as_subject(text: str) -> str:
    """One line that mail programs show as it is: what they would decode is broken up."""
    return show_in_text(" ".join(text.split())).replace("=?", "= ?")[:200]


def resend(
    *,
    notice_id: int,
    reason: str,
    caller: Person,
    now: datetime,
    with_others: bool = False,
    expected_version: int | None = None,
) -> int:
    """Give a dead notice its attempts again, and `with_others` all dead ones of its organisation
    and channel, MOST_RESENT at most; returns how many these were.

    The receiver gets the same event id. `expected_version` is the organisation's that said where
    they go. Raises Denied NOT_YOURS for a person of another group, NOT_FOUND, INVALID_TRANSITION
    for a notice that is not dead, or not any more, VERSION_MISMATCH.
    """
    require_deed(caller, Deed.RESEND_NOTICE, reason=reason)
    mine = OutgoingNotice.objects.filter(organisation_id=caller.organisation_id)
    row = mine.filter(id=notice_id).first()
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such notice", "look at the list again")
    if row.state != NoticeState.DEAD:
        raise _not_dead(row.state)
    with transaction.atomic():
        hold_lock("notices sent again", caller.organisation_id)
        require_still(caller)
        require_version(
            "the organisation",
            "open the page again: it shows where the notice goes now",
            expected=expected_version,
            current=current_policy(caller.organisation_id).version,
        )
        if not _start_again(row, caller, reason, now):
            raise _not_dead(NoticeState.PENDING)
        others = mine.filter(channel=row.channel, state=NoticeState.DEAD).order_by("id")
        rows = others[:MOST_RESENT] if with_others else others.none()
        return 1 + sum(_start_again(each, caller, reason, now) for each in rows)


def _start_again(row: OutgoingNotice, caller: Person, reason: str, now: datetime) -> bool:
    row.resend(at=now)
    return _save_step(row, NoticeState.DEAD, caller, reason, now, {"channel": row.channel})


def _not_dead(state: str) -> Denied:
    return refuse(
        Code.INVALID_TRANSITION,
        f"the notice is {state}",
        "wait: only a notice that was given up is sent again",
        rule="a dead notice is resent by a person",
    )
