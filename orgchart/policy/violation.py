"""What a broken invariant is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.language import gettext_noop as _


class Subject(StrEnum):
    """What breaks an invariant: where to look for it."""

    AGENT = "agent"
    ROLE = "role"
    GROUP = "group"
    MAIL_TYPE = "mail type"
    CONTACT = "contact"


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """One broken invariant: its name, what breaks it, and how to correct it."""

    invariant: str
    kind: Subject
    subject: str
    message: str
    fix: str


MEANINGS: Mapping[str, str] = {
    "names": _("Every name means one thing"),
    "known names": _("Rules name what exists"),
    "types of tools": _("Contracts, verdicts and approvals of deployments come from tools"),
    "known tools": _("Roles have tools that exist"),
    "built-in tools": _("Every agent keeps the built-in tools"),
    "paths": _("Paths stay inside the company's files"),
    "exactly one leader": _("Each group has exactly one leader"),
    "one top agent": _("There is one top agent"),
    "chain of command": _("Every agent reports to an active superior"),
    "way up": _("Every agent can write to its superior"),
    "protected denials": _("What is denied to every role stays denied"),
    "single entry to the organisation": _("Only one role changes the organisation"),
    "skills bind no role tools": _("Skills give no tools of roles"),
    "one office for each role": _("A role holds one office"),
    "no agent approves its own work": _("No agent approves its own work"),
    "a judge is not responsible": _("Who judges work is not responsible for it"),
    "QA cannot write source": _("Who tests code cannot change it"),
    "C-01": _("The top agent writes to managers, or to workers of its own"),
    "C-02": _("Only the top agent writes to the Board; managers to their own workers"),
    "C-03": _("A worker writes to its own manager only"),
    "C-04": _("Workers never write to each other"),
    "C-07": _("Workers never issue contracts"),
}
"""Each invariant as people read it, by its name."""
