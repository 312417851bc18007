"""What a broken invariant is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Subject(StrEnum):
    """What breaks an invariant: where to look for it."""

    AGENT = "agent"
    ROLE = "role"
    GROUP = "group"
    MAIL_TYPE = "mail type"
    CONTACT = "contact"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant: its name, what breaks it, and how to correct it."""

    invariant: str
    kind: Subject
    subject: str
    message: str
    fix: str
