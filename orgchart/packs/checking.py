"""A pack checked whole: what its files say, what its names refer to, what must always hold."""

from __future__ import annotations

from pathlib import Path

from orgchart.packs.pack import Pack, policy_of
from orgchart.packs.problems import BadPack, Problem
from orgchart.packs.reading import Reading, read_pack
from orgchart.policy import invariants
from orgchart.policy.violation import Subject, Violation


def check_pack(directory: Path) -> list[Problem]:
    """Every problem of a pack by file and line; empty when it can be loaded. Needs no database."""
    return _checked(directory).notes.all()


def sound_pack(directory: Path) -> Pack:
    """The pack of a folder.

    Raises BadPack with every problem.
    """
    reading = _checked(directory)
    problems = reading.notes.all()
    if problems or reading.pack is None:
        raise BadPack(problems)
    return reading.pack


def _checked(directory: Path) -> Reading:
    reading = read_pack(directory)
    if reading.pack is None or reading.notes.problems:
        return reading  # invariants speak of names that resolve
    for violation in invariants.violations(policy_of(reading.pack)):
        reading.note_at(*_place(violation), violation.message, violation.fix)
    return reading


def _place(violation: Violation) -> tuple[Subject, str]:
    return violation.kind, violation.subject.split(", ")[0]
