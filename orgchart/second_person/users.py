"""Changes of a user: at once, or proposed to another member of the Board (Spec: people 42)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from core.actions import Action
from core.actors import Person
from core.blank import is_blank
from core.database import needs_transaction
from core.decision import Code, Denied, refuse, require, stale
from core.events import Event
from core.people import SignedIn, boards_of, signed_in_as
from core.permissions import Deed, reason_missing, require_deed
from ledger.services import insert_events, record
from orgchart.keys import revoke_keys_of_one_person
from orgchart.models import Organisation, PendingChange
from orgchart.people import rules
from orgchart.people.authenticators import newest_device, remove_authenticators, remove_devices
from orgchart.people.members import OF_PERSON, lock_users, save_standing, seen_as, standing_of
from orgchart.people.passwords import (
    acting_as,
    ask_for_code,
    code_from,
    known_to,
    who_may_act_as,
)
from orgchart.people.rules import EVERY, INSTALLATION, Standing
from orgchart.second_person.rules import AS_SHOWN
from orgchart.second_person.vocabulary import SUBJECT

ACT = "change the rights of"


def change_user(
    *, user: User, after: Standing, who: SignedIn, now: datetime, seen: str = ""
) -> PendingChange | None:
    """Give a user this standing, or propose it where a second person must confirm it.

    `seen` is what their form says of the user that they read (`seen_as`); with it, the columns that
    give no right are saved from `user`. Returns the proposal, or None where the change took effect.
    Raises Denied, VERSION_MISMATCH where the user has another name or standing by now.
    """
    with transaction.atomic():
        who = _locked(who)
        before = standing_of(user)
        if seen:
            if seen != seen_as(User.objects.get(pk=user.pk), before):
                raise Denied(stale(f"user {user.get_username()}", "open it again"))
            user.save(update_fields=OF_PERSON)
        if after == before:
            return None
        asked, boards = _asked(who, user, before, after)
        if not asked:
            _save(user, before, after, who, now)
            return None
        require(rules.can_be_asked(asked, boards, who.username))
        return _propose(user, before, after, asked, who, now)


def require_password_change(*, user: User, who: SignedIn) -> None:
    """Check that a person may choose another user's password. Raises Denied.

    Spec: people 44; and people 49, where a code is asked of the user.
    """
    with transaction.atomic():
        who = _locked(who)
        asked, boards = _asked(who, user, rules.NOTHING, standing_of(user))
        name, members = user.get_username(), rules.confirmers(boards, boards)
        require(rules.can_set_password(asked, name))
        shown_to = code_from(user.pk)
        require(rules.can_know_password(who.username, name, shown_to, members, acting_as()))


def remove_second_factor(
    *, user: User, who: SignedIn, reason: str, now: datetime, seen: str
) -> str:
    """Remove a user's authenticators, end their sessions; the code for their next sign-in.

    Where a code is asked already, the new one takes its place: it is shown once, and may be lost.
    `seen` is what the form says of the authenticator and the code that it was read at
    (`seen_factor`); a form that its person sent before, as by a double click, may differ.
    Raises Denied: NOT_YOURS for a user out of reach, oneself, and one whose password the person may
    know (Spec: people 50); INVALID_PARAMS without a reason, NOT_FOUND where there is none,
    VERSION_MISMATCH where there is another one by now.
    """
    if is_blank(reason):
        raise Denied(reason_missing(Deed.KEEP_PEOPLE))
    with transaction.atomic():
        who = _locked(who)
        _, boards = _asked(who, user, rules.NOTHING, standing_of(user))
        name, members = user.get_username(), rules.confirmers(boards, boards)
        require(rules.can_have_code(who.username, name, known_to(user.pk), members, acting_as()))
        if seen != seen_factor(user) and code_from(user.pk) != who.username:
            raise Denied(stale(f"the second factor of {name}", "open the user again"))
        if not remove_authenticators(user) and not code_from(user.pk):
            raise refuse(Code.NOT_FOUND, f"{name} has no second factor", "nothing is left to do")
        record(
            Action.CODE_REMOVED,
            by=who.on(INSTALLATION),
            at=now,
            subject=f"user:{name}",
            reason=reason,
        )
        return ask_for_code(user=user, code_from=who.username)


def seen_factor(user: User) -> str:
    """What a form that removes a second factor was read at: the authenticator, and who has the
    code that is asked of its user (Spec: people 8).
    """
    return f"{newest_device(user) or ''}:{code_from(user.pk)}"


@needs_transaction
def save_confirmed(row: PendingChange, caller: Person, now: datetime) -> str:
    """Let a proposed change of a user take effect, with the rights that its proposer has now.

    Returns the code that the caller hands over to the user, or '' where none is needed. Raises
    Denied: NOT_YOURS, or VERSION_MISMATCH where it is no longer what was shown.
    """
    user = User.objects.get(pk=row.edit["key"])
    proposer = signed_in_as(row.proposed_by, caller.request_id)
    before, after = _standings(row)
    asked, _ = _asked(proposer, user, before, after)
    if standing_of(user) != before or not asked <= set(row.boards):
        raise refuse(
            Code.VERSION_MISMATCH,
            "the user changed: this no longer does what was shown when it was proposed",
            "propose the change again",
            rule=AS_SHOWN,
        )
    _save(user, before, after, proposer, now)
    if not rules.needs_code(before, after, known_to(user.pk)):
        return ""
    remove_devices(user)
    return ask_for_code(user=user, code_from=caller.username)


def require_confirmer(row: PendingChange, caller: Person) -> None:
    """Check that a person belongs to every Board that confirms a change. Raises Denied.

    And is another person than who proposed it (Spec: people 58), and not who may know the password
    of the user, where a code goes with it (Spec: people 49).
    """
    asked = row.boards or [caller.organisation_id]
    boards = boards_of(asked)
    require(rules.can_confirm(caller.username, row.boards, boards))
    proposers, acting = {row.proposed_by, *row.proposer_known_to}, acting_as()
    require(rules.can_be_second(caller.username, proposers, boards, acting))
    if not row.boards:
        return
    user = User.objects.get(pk=row.edit["key"])
    before, after = _standings(row)
    knows = known_to(user.pk)
    if rules.needs_code(before, after, knows):
        members = rules.confirmers(asked, boards)
        name = user.get_username()
        require(rules.can_have_code(caller.username, name, knows, members, acting))


def _standings(row: PendingChange) -> tuple[Standing, Standing]:
    """Of a proposed change of a user: before and after it."""
    values = row.edit["values"]
    return rules.standing_from(values["before"]), rules.standing_from(values["after"])


@needs_transaction
def _save(user: User, before: Standing, after: Standing, who: SignedIn, now: datetime) -> None:
    """Give a user this standing, and let no key stay with one of several members of a Board."""
    caller = who.on(INSTALLATION)
    save_standing(user=user, after=after, caller=caller, now=now)
    is_root = before.is_superuser or after.is_superuser
    ids = {EVERY} if is_root else before.organisations | after.organisations
    revoke_keys_of_one_person(ids, caller=caller, now=now)


@needs_transaction
def _locked(who: SignedIn) -> SignedIn:
    """The person as they are once no other change of a user is under way."""
    lock_users()
    return signed_in_as(who.username, who.request_id)


def _asked(
    who: SignedIn, user: User, before: Standing, after: Standing
) -> tuple[frozenset[int], Mapping[int, frozenset[str]]]:
    """The Boards that confirm a change, and the members of each that it could concern."""
    require_deed(who.on(next(iter(who.organisations or {INSTALLATION}))), Deed.KEEP_PEOPLE)
    require(
        rules.can_change_user(
            organisations=who.organisations,
            is_superuser=who.is_superuser,
            before=before,
            after=after,
        )
    )
    concerned = before.organisations | after.organisations
    if EVERY in concerned or before.is_superuser or after.is_superuser:
        ids = {*Organisation.objects.values_list("id", flat=True), INSTALLATION}
    else:
        ids = {one for one in concerned if one is not None}
    boards = boards_of(ids)
    username = user.get_username()
    require(rules.can_leave_boards(username, after, boards))
    asked = rules.boards_to_ask(
        by=who.username,
        username=username,
        before=before,
        after=after,
        boards=boards,
        acting_as=acting_as(),
    )
    return asked, boards


@needs_transaction
def _propose(
    user: User,
    before: Standing,
    after: Standing,
    asked: frozenset[int],
    who: SignedIn,
    now: datetime,
) -> PendingChange:
    values = {"before": before.stored(), "after": after.stored()}
    edit = {"act": ACT, "key": user.pk, "values": values}
    same: dict[str, Any] = {"boards": sorted(asked), "edit": edit, "proposed_by": who.username}
    if known := PendingChange.objects.waiting(**same):
        return known
    names: dict[int | None, str] = {EVERY: "every organisation"}
    # Who sees the proposal may be a member of no other one (Spec: people 36).
    names.update(Organisation.objects.filter(id__in=asked).values_list("id", "name"))
    added = rules.rights_added(before, after)
    row = PendingChange.objects.create(
        **same,
        subject=f"user {user.get_username()}",
        allowed=_sentences(user, added, names),
        forbidden=_sentences(user, rules.rights_added(after, before), names),
        policy_version=0,
        proposer_known_to=sorted(who_may_act_as(who.username)),
        proposed_at=now,
    )
    events: list[Event] = []
    for board in row.boards:  # who reads its ledger may know no other organisation
        here = frozenset(right for right in added if right[1] in (board, EVERY))
        event = Event.by(
            who.on(board),
            Action.CHANGE_PROPOSED,
            at=now,
            subject=SUBJECT.format(row.pk),
            details={"change": row.subject, "allowed": _sentences(user, here, names)[:20]},
        )
        events.append(event)
    insert_events(events)
    return row


def _sentences(
    user: User, rights: frozenset[rules.Right], names: Mapping[int | None, str]
) -> list[str]:
    places = {(name, names.get(one, "another organisation")) for name, one in rights}
    return sorted(f"{user.get_username()}: {name} in {place}" for name, place in places)
