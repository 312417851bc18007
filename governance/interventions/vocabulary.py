"""The offices in which people intervene (Spec: constitution 16)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from core.permissions import Deed, PeopleGroup


class HumanOffice(StrEnum):
    """The `operator_role` of an intervention (Spec: constitution 16)."""

    ADMIN = "HUMAN_ADMIN"
    REVIEWER = "HUMAN_REVIEWER"
    OBSERVER = "HUMAN_OBSERVER"
    HR = "HR"


OFFICE_OF_GROUP: Mapping[PeopleGroup, HumanOffice] = {
    PeopleGroup.OBSERVER: HumanOffice.OBSERVER,
    PeopleGroup.REVIEWER: HumanOffice.REVIEWER,
    PeopleGroup.HR: HumanOffice.HR,
    PeopleGroup.BOARD: HumanOffice.ADMIN,
}
"""In the order in which a person of several groups acts: the narrowest office first."""


def operator_role(groups: Collection[str], deed: Deed) -> HumanOffice | None:
    """The narrowest office of these groups that may do this (Spec: constitution 16)."""
    for group, office in OFFICE_OF_GROUP.items():
        if group in groups and group in deed.value.groups:
            return office
    return None
