"""Closed sets of values in a table: the choices of a field, and the constraint that holds them."""

from collections.abc import Iterable
from enum import StrEnum

from django.db import models


def choices_of(values: type[StrEnum]) -> list[tuple[str, str]]:
    """The choices of a field, with names that people read."""
    return [(value.value, value.value.replace("_", " ")) for value in values]


def one_of(field: str, values: Iterable[str], *, name: str) -> models.CheckConstraint:
    """The constraint that the field holds one of these values."""
    known = [str(value) for value in values]
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": known}), name=name)
