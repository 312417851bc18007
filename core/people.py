"""People: their groups, who sent a request, and the record of what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from getpass import getuser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q
from django.http import HttpRequest

from core.actions import Action
from core.actors import Person, denial
from core.decision import Deny
from core.deeds import PeopleGroup
from core.events import Event, record_event

ADMIN_TOOL = "admin"
"""What the ledger names as the tool of everything that people do in the admin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Who is signed in, before the organisation they act on is known."""

    username: str
    groups: frozenset[str]
    is_superuser: bool = False
    request_id: str = ""

    def on(self, organisation_id: int, policy_version: int | None = None) -> Person:
        """The same person, acting on one organisation: what services take as their caller."""
        return Person(
            username=self.username,
            organisation_id=organisation_id,
            groups=self.groups,
            is_superuser=self.is_superuser,
            policy_version=policy_version,
            request_id=self.request_id,
        )


def groups_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """The groups that give a user rights; a superuser is always a member of the Board."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    groups: Any = getattr(user, "groups", None)
    names = frozenset(groups.values_list("name", flat=True)) if groups is not None else frozenset()
    return names | {PeopleGroup.BOARD} if getattr(user, "is_superuser", False) else names


def signed_in(request: HttpRequest) -> SignedIn:
    """The person who sent a request to the admin."""
    return SignedIn(
        username=request.user.get_username(),
        groups=groups_of(request.user),
        is_superuser=bool(getattr(request.user, "is_superuser", False) and request.user.is_active),
        request_id=getattr(request, "request_id", ""),
    )


def person(request: HttpRequest, organisation_id: int, policy_version: int | None = None) -> Person:
    """The person who sent a request, acting on one organisation."""
    return signed_in(request).on(organisation_id, policy_version)


def operator(organisation_id: int = 0, policy_version: int | None = None) -> Person:
    """The person at the command line: with access to the server, so with every right."""
    try:
        username = getuser()
    except (KeyError, OSError):
        username = "operator"
    return Person(
        username=username,
        organisation_id=organisation_id,
        groups=frozenset({PeopleGroup.BOARD}),
        is_superuser=True,
        policy_version=policy_version,
        at_shell=True,
    )


def person_named(username: str, organisation_id: int) -> Person:
    """A person by the groups that they have now; without any where there is no such user."""
    user = get_user_model().objects.filter(username=username).first()
    return Person(
        username=username,
        organisation_id=organisation_id,
        groups=groups_of(user) if user else frozenset(),
        is_superuser=bool(user and user.is_active and getattr(user, "is_superuser", False)),
    )


def board_members() -> frozenset[str]:
    """The usernames of everyone who acts for the Board in the admin: active, staff, by group."""
    users = get_user_model().objects.filter(is_active=True, is_staff=True)
    of_board = Q(is_superuser=True) | Q(groups__name=PeopleGroup.BOARD)
    return frozenset(users.filter(of_board).values_list("username", flat=True))


def record_refusal(
    *,
    who: SignedIn,
    deny: Deny,
    subject: str,
    now: datetime,
    organisation_id: int | None = None,
) -> None:
    """Record what a person was refused, as a statement of its own."""
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
