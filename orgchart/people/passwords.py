"""Passwords that somebody else chose (Spec: people 37, people 48): their table's only writer."""

from __future__ import annotations

import hashlib
import secrets

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User

from core.database import needs_transaction
from orgchart.people import rules
from orgchart.people.models import GivenPassword

CODE_BYTES = 9


@needs_transaction
def lock_user(user: AbstractBaseUser | AnonymousUser) -> None:
    """Read a user again, whose rights, password and code wait with their changes from now on.

    Else a change that checks a password for a while would write over what happened meanwhile.
    """
    if isinstance(user, User):
        user.refresh_from_db(from_queryset=User.objects.select_for_update(no_key=True))


def give_password(user_id: int, *, by: str = "") -> None:
    """Say that somebody else chose a user's password; `by` is a person, or '' the operator."""
    knows = [by, *sorted(who_may_act_as(by) - {by})] if by else []
    given = {"known_to": knows, "is_changed": False}
    GivenPassword.objects.update_or_create(person_id=user_id, defaults=given)


def take_password(user_id: int) -> None:
    """Say that a user has chosen the password themself, with the code where one is asked.

    Without a code it may have been the person who chose the one before (Spec: people 49).
    """
    rows = GivenPassword.objects.filter(person_id=user_id)
    rows.exclude(code_from="").delete()
    rows.update(is_changed=True)


def is_given(user_id: int) -> bool:
    """Whether others know a user's password."""
    return GivenPassword.objects.filter(person_id=user_id, is_changed=False).exists()


def known_to(user_id: int) -> list[str]:
    """Who may know a user's password: who chose it last, then all who could act as them then."""
    rows = GivenPassword.objects.filter(person_id=user_id)
    return rows.values_list("known_to", flat=True).first() or []


def acting_as() -> dict[str, frozenset[str]]:
    """Of each user whose password others may know: those who may act as this user, with the user.

    While a code is asked no other person acts as them: who knows the password has no code
    (Spec: people 49).
    """
    rows = GivenPassword.objects.filter(code_from="").exclude(known_to=[])
    found = rows.values_list("person__username", "known_to")
    return {name: frozenset({name, *known}) for name, known in found}


def who_may_act_as(username: str) -> frozenset[str]:
    """All who may act as a user at this moment, with the user."""
    return rules.who_may_act_as(username, acting_as())


@needs_transaction
def ask_for_code(*, user: User, code_from: str) -> str:
    """Let a user change the password with a new code, before anything else; the code.

    It is stored as a digest: only the person who is answered it can hand it over.
    """
    lock_user(user)
    code = secrets.token_urlsafe(CODE_BYTES)
    asked = {"code_from": code_from, "code_digest": _digest(code), "is_changed": False}
    GivenPassword.objects.update_or_create(person=user, defaults=asked)
    return code


def code_from(user_id: int) -> str:
    """The name of the person who has the code that a user must enter; empty where none is asked."""
    rows = GivenPassword.objects.filter(person_id=user_id)
    return rows.values_list("code_from", flat=True).first() or ""


def is_code(user_id: int, code: str) -> bool:
    """Whether this is the code that the user must enter."""
    rows = GivenPassword.objects.filter(person_id=user_id).exclude(code_from="")
    asked = rows.values_list("code_digest", flat=True).first()
    return asked is not None and secrets.compare_digest(asked, _digest(code.strip()))


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
