"""People: their groups, who sent a request, and the record of what was refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from getpass import getuser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import BigIntegerField, QuerySet, Value
from django.http import HttpRequest

from core.actions import Action
from core.actors import Actor, Person, denial
from core.decision import Code, Deny, refuse
from core.events import Event, record_event
from core.hooks import Hook
from core.permissions import PeopleGroup

ADMIN_TOOL = "admin"
"""What the ledger names as the tool of everything that people do in the admin."""

Organisations = frozenset[int] | None
"""The organisations that somebody is a member of; None is every one, also those that come later."""

memberships_of = Hook[[int], Organisations]("the organisations that a user is a member of")
members_among = Hook[[QuerySet[Any], Collection[int]], QuerySet[Any]](
    "the names of users that are members of organisations, each with one, or None for every one"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Who is signed in, before the organisation they act on is known."""

    username: str
    groups: frozenset[str]
    is_superuser: bool = False
    organisations: Organisations = frozenset()
    request_id: str = ""

    def is_member_of(self, organisation_id: int | None) -> bool:
        """Whether they see an organisation; 0 and None are the installation, for members of all."""
        return self.organisations is None or organisation_id in self.organisations

    def on(self, organisation_id: int, policy_version: int | None = None) -> Person:
        """The same person, acting on one organisation: what services take as their caller."""
        return Person(
            username=self.username,
            organisation_id=organisation_id,
            groups=self.groups,
            is_superuser=self.is_superuser,
            is_member=self.is_member_of(organisation_id),
            is_member_of_all=self.is_member_of(None),
            policy_version=policy_version,
            request_id=self.request_id,
            is_asked_again=True,
        )


def groups_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """The groups that give a user rights; a superuser is always a member of the Board."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    groups: Any = getattr(user, "groups", None)
    names = frozenset(groups.values_list("name", flat=True)) if groups is not None else frozenset()
    return names | {PeopleGroup.BOARD} if getattr(user, "is_superuser", False) else names


def organisations_of(user: AbstractBaseUser | AnonymousUser) -> Organisations:
    """The organisations that a user is a member of; a superuser is a member of every one."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if getattr(user, "is_superuser", False):
        return None
    found: set[int] = set()
    for answer in memberships_of(user.pk):
        if answer is None:
            return None
        found |= answer
    return frozenset(found)


def signed_in(request: HttpRequest) -> SignedIn:
    """The person who sent a request to the admin; what they are is asked for once in a request."""
    known = getattr(request, "signed_in", None)
    if isinstance(known, SignedIn) and known.username == request.user.get_username():
        return known
    found = SignedIn(
        username=request.user.get_username(),
        groups=groups_of(request.user),
        is_superuser=bool(getattr(request.user, "is_superuser", False) and request.user.is_active),
        organisations=organisations_of(request.user),
        request_id=getattr(request, "request_id", ""),
    )
    request.signed_in = found  # type: ignore[attr-defined]
    return found


def person(request: HttpRequest, organisation_id: int, policy_version: int | None = None) -> Person:
    """The person who sent a request, acting on one organisation."""
    return signed_in(request).on(organisation_id, policy_version)


def system_user() -> str:
    """The name of the user that runs this; "operator" where the system has none for it."""
    try:
        return getuser()
    except (KeyError, OSError):
        return "operator"


def operator(organisation_id: int = 0, policy_version: int | None = None) -> Person:
    """The person at the command line: with access to the server, so with every right."""
    return Person(
        username=system_user(),
        organisation_id=organisation_id,
        groups=frozenset({PeopleGroup.BOARD}),
        is_superuser=True,
        is_member=True,
        is_member_of_all=True,
        policy_version=policy_version,
        at_shell=True,
    )


def signed_in_as(username: str, request_id: str = "") -> SignedIn:
    """A user by the groups and organisations they have now; without any who cannot sign in."""
    users = get_user_model().objects.filter(is_staff=True)
    user = users.filter(username=username).first() or AnonymousUser()
    return SignedIn(
        username=username,
        groups=groups_of(user),
        is_superuser=bool(user.is_active and getattr(user, "is_superuser", False)),
        organisations=organisations_of(user),
        request_id=request_id,
    )


def person_named(username: str, organisation_id: int) -> Person:
    """A person by the groups that they have now; without any where there is no such user."""
    return signed_in_as(username).on(organisation_id)


def require_still(caller: Actor) -> None:
    """Ask again what a person is, once their act has waited for a lock or another machine.

    Raises Denied NOT_YOURS where a right of theirs has ended since their request began.
    Spec: people 68.
    """
    if not isinstance(caller, Person) or not caller.is_asked_again:
        return
    now = person_named(caller.username, caller.organisation_id)
    if not _standing(caller) <= _standing(now):
        raise refuse(
            Code.NOT_YOURS,
            "a right of yours ended while this was carried out, so nothing was changed",
            f"ask a member of {PeopleGroup.BOARD}",
            rule="a person acts with the rights of the moment (spec: people 68)",
        )


def _standing(person: Person) -> frozenset[str]:
    facts = ("is_member", "is_member_of_all", "is_superuser")
    return person.groups | {name for name in facts if getattr(person, name)}


def board_members(organisation_id: int) -> frozenset[str]:
    """The usernames of everyone who acts for an organisation's Board: active, staff, by group."""
    return boards_of([organisation_id])[organisation_id]


def boards_of(organisation_ids: Collection[int]) -> dict[int, frozenset[str]]:
    """The `board_members` of each of these organisations, asked for at once: there may be many."""
    users = get_user_model().objects.filter(is_active=True, is_staff=True)
    every = Value(None, output_field=BigIntegerField())
    of_all = users.filter(is_superuser=True).values_list("username", every)
    of_board = users.filter(groups__name=PeopleGroup.BOARD)
    found = defaultdict[int | None, set[str]](set)
    for name, one in of_all.union(*members_among(of_board, organisation_ids)):
        found[one].add(name)
    return {one: frozenset(found[one] | found[None]) for one in organisation_ids}


def record_refused_person(
    request: HttpRequest,
    deny: Deny,
    *,
    subject: str,
    now: datetime,
    organisation_id: int | None = None,
) -> None:
    """Record what the person who sent a request was refused, as a statement of its own."""
    who = signed_in(request)
    record_event(
        Event(
            action=Action.HUMAN_DENIED,
            actor=f"human:{who.username}",
            at=now,
            organisation_id=organisation_id,
            tool=ADMIN_TOOL,
            subject=subject,
            request_id=who.request_id,
            **denial(deny),
        )
    )
