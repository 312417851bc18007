"""The humans: their groups, who is behind a request, and the trace of what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest

from core.actions import Action
from core.actors import Person, denial
from core.decision import Code, Deny, refuse
from core.events import Event, record_event

ADMIN_TOOL = "admin"
"""What the ledger names as the tool of everything that people do in the admin."""


class Desk(StrEnum):
    """The groups that come with `migrate` (decisions.md, human roles)."""

    BOARD = "Board"
    HR = "HR"
    REVIEWER = "Reviewer"
    OBSERVER = "Observer"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Who is signed in, before it is known on which organisation they act."""

    username: str
    desks: frozenset[str]
    request_id: str = ""

    def on(self, organisation_id: int, policy_version: int | None = None) -> Person:
        """The same human, acting on one organisation: what services take as their caller."""
        return Person(
            username=self.username,
            organisation_id=organisation_id,
            offices=self.desks,
            policy_version=policy_version,
            request_id=self.request_id,
        )


def desks_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """The groups that give a user rights; a superuser sits at the Board by nature."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    groups: Any = getattr(user, "groups", None)
    names = frozenset(groups.values_list("name", flat=True)) if groups is not None else frozenset()
    return names | {Desk.BOARD} if getattr(user, "is_superuser", False) else names


def signed_in(request: HttpRequest) -> SignedIn:
    """The human behind a request of the admin."""
    return SignedIn(
        username=request.user.get_username(),
        desks=desks_of(request.user),
        request_id=getattr(request, "request_id", ""),
    )


def person(request: HttpRequest, organisation_id: int, policy_version: int | None = None) -> Person:
    """The human behind a request, acting on one organisation."""
    return signed_in(request).on(organisation_id, policy_version)


def record_refusal(
    *,
    who: SignedIn,
    deny: Deny,
    subject: str,
    now: datetime,
    organisation_id: int | None = None,
) -> None:
    """Leave one event of what a human was refused, as a statement by itself."""
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


def require_board(person: Person) -> None:
    """Raises Denied LEVEL_DENIED for a person who holds no office of the Board."""
    if Desk.BOARD not in person.offices:
        raise refuse(
            Code.LEVEL_DENIED,
            f"{person.username} is not of the Board",
            "ask a person of the Board",
            rule="human roles (decisions.md)",
        )


def not_your_desk(permission: str, who: SignedIn) -> Deny:
    """Why somebody without the right may not act, and whom to ask."""
    return Deny(
        Code.NOT_YOURS,
        f"{who.username} sits at {', '.join(sorted(who.desks)) or 'no desk'}, "
        "which does not give this right",
        "ask somebody whose group has it",
        f"permission {permission}",
    )
