"""Passwords that somebody else chose (Spec: people 37): the only writer of their table."""

from __future__ import annotations

from orgchart.people.models import GivenPassword


def give_password(user_id: int) -> None:
    """Say that somebody else chose a user's password."""
    GivenPassword.objects.get_or_create(person_id=user_id)


def take_password(user_id: int) -> None:
    """Say that a user has chosen the password themself."""
    GivenPassword.objects.filter(person_id=user_id).delete()


def is_given(user_id: int) -> bool:
    """Whether others know a user's password."""
    return GivenPassword.objects.filter(person_id=user_id).exists()
