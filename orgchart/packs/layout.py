"""Which files a folder has: a whole pack, or `agents/` and `groups/` alone (Spec: packs 13)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.files import UNFINISHED
from orgchart.packs.problems import Notes
from orgchart.packs.source import PackDocument, read_document
from orgchart.packs.values import problem_of_name

ORGANISATION, ROLES, PROTOCOL = "organisation.yaml", "roles.yaml", "mail-protocol.yaml"
AGENTS, GROUPS, CONFIG = "agents", "groups", "config"
MOST_FILES = 65_535
"""Files of a folder: one for each agent, of which an installation has so many."""
DEFAULTS = Path(__file__).parents[2] / "packs" / "soloqueue"
"""Where the roles and the protocol of a folder come from that has agents and groups only."""
LEADER, MEMBER = "group_leader", "group_member"
"""The roles there."""


@dataclass(frozen=True, slots=True)
class PackLayout:
    """The files of a pack; `organisation` names it where no file does."""

    root: Path
    agents: tuple[Path, ...]
    groups: tuple[Path, ...]
    organisation: str = ""

    def top(self, notes: Notes) -> PackDocument | None:
        """What organisation.yaml says, or its folder's name."""
        if not self.organisation:
            return read_document(self.root / ORGANISATION, notes)
        title = self.organisation.replace("_", " ").replace("-", " ").title()
        return PackDocument(str(self.root), {"organisation": self.organisation, "name": title})

    def roles(self, notes: Notes) -> PackDocument | None:
        """What roles.yaml says, here or by default."""
        return read_document((DEFAULTS if self.organisation else self.root) / ROLES, notes)

    def protocol(self, notes: Notes) -> PackDocument | None:
        """What mail-protocol.yaml says, here or by default."""
        return read_document((DEFAULTS if self.organisation else self.root) / PROTOCOL, notes)


def find_layout(directory: Path, organisation: str, notes: Notes) -> PackLayout | None:
    """The files of the pack in a folder; None, with the reason noted, where there is no folder.

    A folder with `agents/` and none of the three files, itself or in its `config/`, has the layout
    of two folders (Spec: packs 13); its organisation has the name given, or that of the folder.
    """
    if not directory.is_dir():
        notes.add(str(directory), 1, "there is no such folder", "name the pack's folder")
        return None
    root = directory
    if not _has_agents(root) and _has_agents(root / CONFIG):
        root = root / CONFIG
    bare = _has_agents(root) and not any(
        (folder / name).exists()
        for folder in {directory, root}
        for name in (ORGANISATION, ROLES, PROTOCOL)
    )
    if bare and not organisation:
        named = root.resolve()
        organisation = (named.parent if named.name == CONFIG else named).name.lower()
        if problem_of_name(organisation, "organisation"):
            what = f"the folder's name {organisation!r} is no name of an organisation"
            notes.add(str(directory), 1, what, "rename it, or give --organisation NAME")
            return None
    elif not bare:
        root = directory
        if organisation:
            what = f"the pack names its organisation in {ORGANISATION}"
            notes.add(str(directory), 1, what, "leave out --organisation")
        organisation = ""
    _note_strays(root, notes)
    return PackLayout(
        root, _files(root / AGENTS, notes), _files(root / GROUPS, notes), organisation
    )


def _has_agents(root: Path) -> bool:
    return (root / AGENTS).is_dir()


def _files(folder: Path, notes: Notes) -> tuple[Path, ...]:
    """The YAML files of a folder, whose stems must be names."""
    found = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if len(found) > MOST_FILES:
        notes.add(str(folder), 1, f"more than {MOST_FILES} files", "split the pack")
        return ()
    good = []
    for path in found:
        wrong = problem_of_name(path.stem, "file's name")
        if wrong and wrong.context:
            notes.add(str(path), 1, wrong.context["message"], wrong.context["fix"])
        else:
            good.append(path)
    return tuple(good)


def _note_strays(root: Path, notes: Notes) -> None:
    """Note YAML files that are not part of a pack: an agent that is not read would be removed.

    So would one whose file an export did not write any more.
    """
    if (root / UNFINISHED).exists():
        what = "an export into this folder did not come to its end: files may be missing"
        notes.add(str(root), 1, what, "export the organisation again, into this folder")
        return
    allowed = {root / ORGANISATION, root / ROLES, root / PROTOCOL}
    found = {*root.glob("*"), *root.glob("*/*")}
    found.update(path for name in (AGENTS, GROUPS) for path in (root / name).rglob("*"))
    for path in sorted(path for path in found if path.suffix.lower() in (".yaml", ".yml")):
        known_place = path.parent in (root / AGENTS, root / GROUPS) and path.suffix == ".yaml"
        if path not in allowed and not known_place:
            notes.add(
                str(path),
                1,
                "this file is no part of a pack",
                f"rename it to one of {ORGANISATION}, {ROLES}, {PROTOCOL}, "
                f"{GROUPS}/<group>.yaml, {AGENTS}/<handle>.yaml, or remove it",
            )
