"""Finding skills: SKILL.md in the configured folders, the first folder that has one wins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog
from django.conf import settings

from documents.tree import Missing, SafeTree, TooLarge, Unsafe
from workspace.skills.definition import NAME, Definition, parse
from workspace.skills.frontmatter import BadSkill

log = structlog.get_logger(__name__)

FILE = "SKILL.md"
MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """A skill's file, read once: its digest and its meaning are of the same bytes."""

    name: str
    path: str
    digest: str = ""
    text: str = ""
    definition: Definition | None = None
    problem: str = ""


def read(name: str) -> OnDisk | None:
    """The skill of that name, valid or not; None where no folder has it."""
    if NAME.fullmatch(name) is None:
        return None
    for folder in settings.NEXUS_SKILL_FOLDERS:
        found = _read(Path(folder), name)
        if found is not None:
            return found
    return None


def discover() -> Iterator[OnDisk]:
    """Every skill in the folders, by name."""
    names: set[str] = set()
    for folder in settings.NEXUS_SKILL_FOLDERS:
        try:
            entries = SafeTree(Path(folder)).entries()
        except Missing:
            continue
        except (OSError, Unsafe) as problem:
            log.warning("skill_folder_not_read", folder=str(folder), problem=str(problem))
            continue
        names |= {entry.name for entry in entries if entry.is_folder}
    for name in sorted(names):
        found = read(name)
        if found is not None:
            yield found


def _read(folder: Path, name: str) -> OnDisk | None:
    path = str(folder / name / FILE)
    try:
        data = SafeTree(folder).read(f"{name}/{FILE}", limit=MAX_BYTES)
    except Missing:
        return None
    except FileNotFoundError:
        return None
    except (OSError, Unsafe, TooLarge) as problem:
        return OnDisk(name=name, path=path, problem=str(problem)[:500])
    digest = hashlib.sha256(data).hexdigest()
    text = data.decode("utf-8", errors="replace").replace("\x00", "\ufffd")
    try:
        definition = parse(data, name)
    except BadSkill as problem:
        return OnDisk(name=name, path=path, digest=digest, text=text, problem=str(problem))
    return OnDisk(name=name, path=path, digest=digest, text=text, definition=definition)
