"""Passwords that somebody else chose (Spec: people 37, people 48): their table's only writer."""

from __future__ import annotations

import hashlib
import secrets

from orgchart.people.models import GivenPassword

CODE_BYTES = 9


def give_password(user_id: int) -> None:
    """Say that somebody else chose a user's password."""
    GivenPassword.objects.get_or_create(person_id=user_id)


def take_password(user_id: int) -> None:
    """Say that a user has chosen the password themself."""
    GivenPassword.objects.filter(person_id=user_id).delete()


def is_given(user_id: int) -> bool:
    """Whether others know a user's password."""
    return GivenPassword.objects.filter(person_id=user_id).exists()


def ask_for_code(*, user_id: int, code_from: str) -> str:
    """Let a user change the password with a new code, before anything else; the code.

    It is stored as a digest: only the person who is answered it can hand it over.
    """
    code = secrets.token_urlsafe(CODE_BYTES)
    asked = {"code_from": code_from, "code_digest": _digest(code)}
    GivenPassword.objects.update_or_create(person_id=user_id, defaults=asked)
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
