"""A pack checked whole: what its files say, what its names refer to, what must always hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.hooks import Hook
from orgchart import catalogue
from orgchart.packs.pack import Pack, policy_of
from orgchart.packs.problems import BadPack, Problem
from orgchart.packs.reading import Reading, read_pack
from orgchart.policy import invariants
from orgchart.policy.violation import Subject

doubts_about_skill: Hook[[str], list[tuple[str, str]]] = Hook(
    "what is doubtful about a skill that an agent lists, each with a way to correct it"
)


@dataclass(frozen=True, slots=True)
class PackReview:
    """What is wrong with a pack, and what is only doubtful; each by file and line."""

    problems: list[Problem]
    warnings: list[Problem]


def review_pack(directory: Path, organisation: str = "") -> PackReview:
    """Everything to say about a pack; without problems it can be loaded. Needs no database."""
    reading = _checked(directory, organisation)
    return PackReview(reading.notes.all(), sorted(_warnings(reading)))


def sound_pack(directory: Path, organisation: str = "") -> Pack:
    """The pack of a folder.

    Raises BadPack with every problem.
    """
    reading = _checked(directory, organisation)
    problems = reading.notes.all()
    if problems or reading.pack is None:
        raise BadPack(problems)
    return reading.pack


def _checked(directory: Path, organisation: str) -> Reading:
    reading = read_pack(directory, organisation)
    if reading.pack is None or reading.notes.problems:
        return reading  # invariants speak of names that resolve
    for violation in invariants.violations(policy_of(reading.pack)):
        place = reading.line_of(violation.kind, violation.subject.split(", ")[0])
        reading.notes.add(*place, violation.message, violation.fix)
    return reading


def _warnings(reading: Reading) -> set[Problem]:
    """Skills that agents list and that are not installed, or name tools that do not exist."""
    tools = catalogue.known()
    return {
        Problem(*reading.line_of(Subject.AGENT, one.handle, "skills", at), message, fix)
        for one in (reading.pack.staff if reading.pack else ())
        for at, skill in enumerate(one.skills)
        if skill not in tools
        for doubts in doubts_about_skill(skill)
        for message, fix in doubts
    }
