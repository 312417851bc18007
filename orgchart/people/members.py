"""Who belongs to which organisation and group (Spec: people 35): the one writer of memberships."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac

from core.actions import Action
from core.actors import Actor
from core.database import needs_transaction, rows_of_array
from core.events import Event
from core.people import Organisations, SignedIn, members_among, memberships_of
from core.permissions import PeopleGroup
from ledger.services import insert_event
from orgchart.models import Agent, Membership, Organisation
from orgchart.people.rules import EVERY, NOTHING, Standing

OF_PERSON = ("first_name", "last_name", "email")
"""The columns of a user that give no right."""


@memberships_of.join
def organisations_of_user(user_id: int) -> Organisations:
    """The organisations that a user is a member of; None for every one.

    Of none while they have not entered the code of who confirmed their rights (Spec: people 48).
    """
    rows = Membership.objects.filter(person_id=user_id)
    opened = rows.exclude(person__given_password__code_from__gt="")
    ids = set(opened.values_list("organisation_id", flat=True))
    return None if EVERY in ids else frozenset(each for each in ids if each is not None)


@members_among.join
def keep_members(users: QuerySet[Any], organisation_ids: Collection[int]) -> QuerySet[Any]:
    """The memberships of these users in the organisations, as names and organisations."""
    ids = rows_of_array(list(organisation_ids), "bigint")
    rows = Membership.objects.filter(Q(organisation__in=ids) | Q(organisation=EVERY))
    return rows.filter(person__in=users).values_list("person__username", "organisation_id")


@needs_transaction
def lock_users() -> None:
    """Let changes of users follow one another: who is of the Board decides who confirms."""
    Group.objects.select_for_update(no_key=True).filter(name=PeopleGroup.BOARD).first()


def visible_organisations(who: SignedIn) -> QuerySet[Organisation]:
    """The organisations that a person sees."""
    rows = Organisation.objects.all()
    return rows if who.organisations is None else rows.filter(id__in=who.organisations)


def visible_agents(who: SignedIn, handle: str) -> list[int]:
    """The ids of the agents with this handle in the organisations that a person sees."""
    named = Agent.objects.filter(handle=handle, organisation__in=visible_organisations(who))
    return list(named.values_list("id", flat=True))


def standing_of(user: User) -> Standing:
    """What gives a user rights at this moment, as the database has it."""
    now = User.objects.filter(pk=user.pk).first()
    if now is None:
        return NOTHING
    memberships = Membership.objects.filter(person_id=user.pk)
    return Standing(
        is_active=now.is_active,
        is_staff=now.is_staff,
        is_superuser=now.is_superuser,
        groups=frozenset(now.groups.values_list("name", flat=True)),
        organisations=frozenset(memberships.values_list("organisation_id", flat=True)),
    )


def seen_as(user: User, standing: Standing) -> str:
    """What a form of a user carries to say at which name and rights it was read (Spec: people 8).

    With a key: who reads it cannot find out memberships that they do not see.
    """
    person = [getattr(user, column) for column in OF_PERSON]
    content = json.dumps([user.pk, person, standing.stored()], sort_keys=True)
    return salted_hmac("orgchart.standing", content, algorithm="sha256").hexdigest()


@needs_transaction
def save_standing(*, user: User, after: Standing, caller: Actor, now: datetime) -> None:
    """Give a user this standing; the service that calls this has decided that it may be given."""
    User.objects.filter(pk=user.pk).update(is_active=after.is_active, is_staff=after.is_staff)
    user.is_active, user.is_staff = after.is_active, after.is_staff
    user.groups.set(Group.objects.filter(name__in=after.groups))
    set_memberships(user=user, organisations=after.organisations, caller=caller, now=now)


def set_memberships(
    *, user: User, organisations: Collection[int | None], caller: Actor, now: datetime
) -> None:
    """Make a user a member of exactly these organisations, each change with an event of its own.

    `EVERY` (None) among them is every organisation. Who may change which membership is decided by
    the page or command that asks.
    """
    wanted: set[int | None] = {EVERY} if EVERY in organisations else set(organisations)
    one: int | None
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        rows = Membership.objects.filter(person=user)
        present = set(rows.values_list("organisation_id", flat=True))
        for one in present - wanted:
            rows.filter(organisation_id=one).delete()
            _record(Action.MEMBER_REMOVED, user, one, caller, now)
        for one in wanted - present:
            Membership.objects.create(person=user, organisation_id=one, added_by=caller.actor)
            _record(Action.MEMBER_ADDED, user, one, caller, now)


def _record(
    action: Action, user: User, organisation_id: int | None, caller: Actor, now: datetime
) -> None:
    insert_event(
        Event(
            action=action,
            actor=caller.actor,
            at=now,
            organisation_id=organisation_id,
            subject=f"human:{user.get_username()}",
            reason="" if organisation_id is not None else "every organisation",
            request_id=caller.origin.get("request_id", ""),
        )
    )
