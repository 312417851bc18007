"""Proposing a change that gives a right, and confirming, rejecting or withdrawing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from core.actions import Action
from core.actors import Confirmation, Person
from core.database import needs_transaction
from core.decision import Code, Denied, Deny, refuse, require, require_version, stale
from core.events import Event
from core.machines import Swap, swap
from core.people import person_named, require_still
from core.permissions import Deed, require_deed
from ledger.services import record
from ledger.sql import event_cte
from orgchart.models import Organisation, PendingChange
from orgchart.people.members import lock_users
from orgchart.people.passwords import who_may_act_as
from orgchart.second_person.edits import (
    Edit,
    apply_edit,
    apply_followed,
    edit_from,
    followed,
    require_told,
    told_by,
    words_told,
)
from orgchart.second_person.rules import can_decide, can_propose, can_withdraw
from orgchart.second_person.users import require_confirmer, save_confirmed
from orgchart.second_person.vocabulary import SUBJECT, PendingState
from orgchart.services import PolicyChange


def waiting_sentence(change: object) -> str:
    """What a person reads after proposing a change."""
    return gettext(
        "%(change)s waits for a member of the Board other than you. Nothing has changed yet."
    ) % {"change": change}


def propose_change(
    *,
    edit: Edit,
    caller: Person,
    now: datetime,
    reason: str,
    expected_version: int | None,
    shown: Sequence[tuple[str, str, str]] = (),
) -> PendingChange:
    """Keep a change until a second person confirms it; nothing of it takes effect.

    `shown` are the columns it changes with their values before and after, for people; the
    `words_told` are kept with them. A change that this person proposed before, and that still
    waits, is the answer. Raises Denied for what the change itself would be refused, and
    QUOTA_EXCEEDED where too many of this person wait.
    """
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(id=caller.organisation_id)
        seen = apply_edit(
            edit,
            organisation_id=caller.organisation_id,
            caller=caller,
            now=now,
            reason=reason,
            expected_version=expected_version,
            preview=True,
        )
        same: dict[str, Any] = {
            "organisation_id": caller.organisation_id,
            "edit": replace(edit, told=told_by(seen)).stored(),
            "allowed": list(seen.difference.allowed),
            "forbidden": list(seen.difference.forbidden),
            "proposed_by": caller.username,
        }
        if known := PendingChange.objects.waiting(**same):
            return known
        mine = PendingChange.objects.filter(
            organisation_id=caller.organisation_id,
            proposed_by=caller.username,
            state=PendingState.PROPOSED,
        )
        require(can_propose(mine.count()))
        row = PendingChange.objects.create(
            **same,
            subject=edit.subject[:200],
            shown=[list(line) for line in (*shown, *words_told(edit, seen))],
            policy_version=seen.after.version - 1,
            proposer_known_to=sorted(who_may_act_as(caller.username)),
            proposed_at=now,
            reason=reason,
        )
        record(
            Action.CHANGE_PROPOSED,
            by=caller,
            at=now,
            subject=SUBJECT.format(row.pk),
            reason=reason,
            details={"change": edit.subject, "allowed": row.allowed[:20]},
        )
    return row


@dataclass(frozen=True, slots=True)
class ConfirmedChange:
    """A change that was confirmed: what it did to the policy; or, where it gave a user rights, the
    code that its confirmer hands over to the user.
    """

    policy: PolicyChange | None = None
    code: str = ""


def confirm_change(
    *, change_id: int, expected_version: int | None, caller: Person, now: datetime, reason: str
) -> ConfirmedChange:
    """Let a proposed change take effect, on the policy of this moment, by another person.

    Where it can no longer be made as it was shown it becomes stale. Raises Denied: NOT_YOURS for
    the proposer and for other groups, NOT_FOUND, INVALID_TRANSITION, VERSION_MISMATCH.
    """
    require_deed(caller, Deed.CONFIRM_CHANGE, reason=reason)
    try:
        with _followed(change_id, caller, now) as take_effect, transaction.atomic():
            row = _locked(change_id, caller, expected_version)
            require(can_decide(caller, row.proposed_by))
            require_confirmer(row, caller)
            confirmed = _apply(row, caller, now, take_effect)
            _save_step(row, row.confirm, Action.CHANGE_CONFIRMED, caller, now, reason)
            return confirmed
    except _CannotApply as problem:
        with transaction.atomic():
            row = _locked(change_id, caller, expected_version)
            _save_step(
                row, row.go_stale, Action.CHANGE_STALE, caller, now, problem.cause.deny.message
            )
        raise refuse(
            problem.cause.deny.code,
            problem.cause.deny.message,
            "propose the change again",
            rule=problem.cause.deny.rule,
            **dict(problem.cause.deny.details),
        ) from problem


def reject_change(
    *, change_id: int, expected_version: int | None, caller: Person, now: datetime, reason: str
) -> None:
    """Refuse a proposed change for good. Raises Denied like `confirm_change`."""
    require_deed(caller, Deed.REJECT_CHANGE, reason=reason)
    with transaction.atomic():
        row = _locked(change_id, caller, expected_version)
        require(can_decide(caller, row.proposed_by))
        _save_step(row, row.reject, Action.CHANGE_REJECTED, caller, now, reason)


def withdraw_change(
    *, change_id: int, expected_version: int | None, caller: Person, now: datetime, reason: str
) -> None:
    """Take back one's own proposal. Raises Denied like `confirm_change`."""
    require_deed(caller, Deed.WITHDRAW_CHANGE, reason=reason)
    with transaction.atomic():
        row = _locked(change_id, caller, expected_version)
        require(can_withdraw(caller, row.proposed_by))
        _save_step(row, row.withdraw, Action.CHANGE_WITHDRAWN, caller, now, reason)


class _CannotApply(Exception):
    """The change itself was refused: it can no longer be made as it was shown."""

    def __init__(self, cause: Denied) -> None:
        self.cause = cause


@needs_transaction
def _apply(
    row: PendingChange, caller: Person, now: datetime, take_effect: Callable[[], None]
) -> ConfirmedChange:
    """Apply the edit as its proposer, with the rights that they have now."""
    if row.organisation_id is None:
        with _applying():
            return ConfirmedChange(code=save_confirmed(row, caller, now))
    proposer, edit = _proposer(row, row.organisation_id, caller), edit_from(row.edit)
    with _applying():
        change = apply_followed(
            edit,
            organisation_id=row.organisation_id,
            caller=proposer,
            now=now,
            reason=row.reason,
            expected_version=None,
        )
        require_told(edit, change)
        take_effect()
    return ConfirmedChange(change)


def _proposer(row: PendingChange, organisation_id: int, caller: Person) -> Person:
    """Who proposed the change, with the rights of now and the confirmation of this person."""
    confirmation = Confirmation(
        by=caller.actor, allowed=tuple(row.allowed), forbidden=tuple(row.forbidden)
    )
    return replace(
        person_named(row.proposed_by, organisation_id),
        confirmation=confirmation,
        request_id=caller.request_id,
    )


@contextmanager
def _followed(change_id: int, caller: Person, now: datetime) -> Iterator[Callable[[], None]]:
    """As `followed`, of a change that this person can confirm; whether it can is decided again."""
    found = PendingChange.objects.filter(id=change_id, organisation_id=caller.organisation_id)
    row = found.filter(state=PendingState.PROPOSED).first()
    if row is None or isinstance(can_decide(caller, row.proposed_by), Deny):
        yield lambda: None
        return
    proposer = _proposer(row, caller.organisation_id, caller)
    with ExitStack() as stack:
        try:
            take_effect = stack.enter_context(
                followed(
                    edit_from(row.edit),
                    organisation_id=caller.organisation_id,
                    caller=proposer,
                    now=now,
                    reason=row.reason,
                )
            )
        except Denied as refusal:
            raise _CannotApply(refusal) from refusal
        yield take_effect


@contextmanager
def _applying() -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
    except Denied as refusal:
        raise _CannotApply(refusal) from refusal


@needs_transaction
def _locked(change_id: int, caller: Person, expected_version: int | None) -> PendingChange:
    """The proposed change of the caller's organisation, at the version that was looked at."""
    # First what every change of policy locks, or every change of a user.
    rows = PendingChange.objects.filter(id=change_id)
    if rows.filter(boards__contains=[caller.organisation_id]).exists():
        lock_users()
    else:
        rows = rows.filter(organisation_id=caller.organisation_id)
        organisations = Organisation.objects.select_for_update(no_key=True)
        organisations.filter(id=caller.organisation_id).first()
    row = rows.select_for_update(no_key=True).first()
    require_still(caller)
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            f"there is no change {change_id} to confirm",
            "choose one of the list",
            rule="the change exists",
        )
    if row.state != PendingState.PROPOSED:
        raise refuse(
            Code.INVALID_TRANSITION,
            f"change {change_id} is {row.state} already",
            "nothing is left to do",
            rule="only a proposed change is decided",
        )
    require_version(
        f"change {change_id}", "open it again", expected=expected_version, current=row.version
    )
    return row


@needs_transaction
def _save_step(
    row: PendingChange,
    step: Callable[..., None],
    action: Action,
    caller: Person,
    now: datetime,
    reason: str,
) -> None:
    """Save the decision with its event, as one statement."""
    before = row.state
    step(by=caller.username, at=now, reason=reason)
    event = Event.by(
        caller,
        action,
        at=now,
        subject=SUBJECT.format(row.pk),
        reason=reason,
        details={"change": row.subject, "proposed_by": row.proposed_by},
    )
    saved = swap(
        Swap(
            model=PendingChange,
            key=row.pk,
            version=row.version,
            state=("state", before, row.state),
            values={
                "decided_by": row.decided_by,
                "decided_at": row.decided_at,
                "decision_reason": row.decision_reason,
            },
        ),
        [event_cte(event)],
    )
    if not saved:
        raise Denied(stale(f"change {row.pk}", "open it again"))
