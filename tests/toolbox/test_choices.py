"""A parameter with fixed choices offers all values of the enumeration that the code decides by.

They are written twice, since a tool's schema shows them as plain words; this ties the two.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Literal, get_args, get_origin

from django.db.models import TextChoices

from toolbox.registry import REGISTRY

PRODUCT = {
    *["core", "orgchart", "mailroom", "contracts", "tasks"],
    *["governance", "toolbox", "ledger", "workspace", "documents"],
}
NOT_A_VALUE = {"all"}
PARTIAL = {("case_submit", "stage"): "the VERDICT is given with case_decide"}
"""Parameters that offer a part of an enumeration, each with its reason."""


def choices(annotation: Any) -> Iterator[frozenset[str]]:
    if get_origin(annotation) is Literal:
        yield frozenset(each for each in get_args(annotation) if isinstance(each, str))
    else:
        for inner in get_args(annotation):
            yield from choices(inner)


def subclasses(parent: type) -> Iterator[type]:
    for child in parent.__subclasses__():
        yield child
        yield from subclasses(child)


def enumerations() -> set[frozenset[str]]:
    found = {*subclasses(StrEnum), *subclasses(TextChoices)}
    return {
        frozenset(str(member.value) for member in each)
        for each in found
        if each.__module__.partition(".")[0] in PRODUCT
    }


def offered() -> dict[tuple[str, str], frozenset[str]]:
    return {
        (tool.name, name): found - NOT_A_VALUE
        for tool in REGISTRY.all()
        for name, field in tool.params.model_fields.items()
        for found in choices(field.annotation)
        if len(found - NOT_A_VALUE) > 1
    }


def test_are_all_values_or_say_why_not():
    known = enumerations()
    partial = {
        place
        for place, values in offered().items()
        if values not in known and any(values < each or (each and each < values) for each in known)
    }
    assert partial == PARTIAL.keys()


def test_of_most_parameters_are_an_enumeration():
    known = enumerations()
    assert sum(values in known for values in offered().values()) > 20
