"""From the files of a pack to a Pack value, with every problem on the way noted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from orgchart import catalogue
from orgchart.orgsettings import SETTINGS, BadSetting, checked
from orgchart.packs import people, protocol
from orgchart.packs.fields import Section, problem_of_name, suggest
from orgchart.packs.pack import Pack, PackToolRestriction
from orgchart.packs.problems import Notes
from orgchart.packs.roles import read_roles
from orgchart.packs.source import read_mapping
from orgchart.policy.compiled import Group, ToolRestriction
from orgchart.policy.violation import Subject
from orgchart.policy.vocabulary import BOARD, ToolMode

ORGANISATION, ROLES, PROTOCOL = "organisation.yaml", "roles.yaml", "mail-protocol.yaml"
AGENTS, GROUPS = "agents", "groups"
MOST_FILES = 10_000


@dataclass(slots=True)
class Reading:
    """What was read: the pack, the problems, and the line of each thing."""

    directory: Path
    notes: Notes = field(default_factory=Notes)
    places: dict[tuple[Subject, str], tuple[str, int]] = field(default_factory=dict)
    pack: Pack | None = None

    def section(self, path: Path) -> Section | None:
        """The mapping a file holds."""
        node = read_mapping(path, self.notes)
        return None if node is None else Section(node, str(path), self.notes)

    def note_at(self, kind: Subject, name: str, message: str, fix: str) -> None:
        """Note a problem at the line of the thing, or at the organisation's first line."""
        whole = (str(self.directory / ORGANISATION), 1)
        self.notes.add(*self.places.get((kind, name), whole), message, fix)

    def remember(self, kind: Subject, name: str, section: Section) -> None:
        """Keep the line of a thing, for problems found later."""
        self.places.setdefault((kind, name), (section.file, section.line))


def read_pack(directory: Path) -> Reading:
    """Read every file to its end. `pack` is None where a file could not be read at all."""
    reading = Reading(directory)
    if not directory.is_dir():
        reading.notes.add(str(directory), 1, "there is no such folder", "name the pack's folder")
        return reading
    _note_strays(reading)
    top = reading.section(directory / ORGANISATION)
    roles_file = reading.section(directory / ROLES)
    protocol_file = reading.section(directory / PROTOCOL)
    agent_files = _files(reading, AGENTS)
    if top is None or roles_file is None or protocol_file is None:
        return reading
    roles = read_roles(roles_file, reading.remember)
    role_names = roles_file.section("roles") or ()
    groups = _read_groups(reading)
    handles = [path.stem for path in agent_files]
    staff = people.read_staff(
        {path.stem: section for path in agent_files if (section := reading.section(path))},
        people.Known(handles, list(role_names), [group.slug for group in groups]),
        reading.remember,
    )
    mail_types = protocol.read_types(protocol_file, list(role_names), reading.remember)
    reading.pack = Pack(
        organisation=top.name("organisation"),
        name=top.text("name", longest=200, empty=False),
        description=top.text("description"),
        settings=_read_settings(top),
        aliases=_read_aliases(top, handles),
        tool_restrictions=_read_tool_restrictions(top, handles, list(role_names)),
        roles=roles,
        groups=groups,
        staff=staff,
        mail_types=mail_types,
        contacts=protocol.read_contacts(protocol_file, list(role_names), reading.remember),
    )
    top.allow(
        "organisation",
        "name",
        "description",
        "settings",
        "aliases",
        "tool_restrictions",
        "tightenings",
        required=("organisation", "name"),
    )
    return reading


def _files(reading: Reading, folder: str) -> list[Path]:
    """The YAML files of a folder, whose stems must be names."""
    directory = reading.directory / folder
    found = sorted(directory.glob("*.yaml")) if directory.is_dir() else []
    if len(found) > MOST_FILES:
        reading.notes.add(str(directory), 1, f"more than {MOST_FILES} files", "split the pack")
        return []
    good = []
    for path in found:
        problem = problem_of_name(path.stem, None, "file's name")
        if path.stem == BOARD:
            problem = (f"`{BOARD}` names the humans, not an agent", "choose another name")
        if problem:
            reading.notes.add(str(path), 1, *problem)
        else:
            good.append(path)
    return good


def _note_strays(reading: Reading) -> None:
    """Note YAML files that are not part of a pack."""
    root = reading.directory
    allowed = {root / ORGANISATION, root / ROLES, root / PROTOCOL}
    for path in sorted([*root.glob("*.y*ml"), *root.glob("*/*.y*ml")]):
        known_place = path.parent in (root / AGENTS, root / GROUPS) and path.suffix == ".yaml"
        if path not in allowed and not known_place:
            reading.notes.add(
                str(path),
                1,
                "this file is no part of a pack",
                f"rename it to one of {ORGANISATION}, {ROLES}, {PROTOCOL}, "
                f"{GROUPS}/<group>.yaml, {AGENTS}/<handle>.yaml, or remove it",
            )


def _read_groups(reading: Reading) -> tuple[Group, ...]:
    found = []
    for path in _files(reading, GROUPS):
        section = reading.section(path)
        if section is None:
            continue
        section.allow("group", "name", "context", "member_delegation", required=("group", "name"))
        slug = section.name("group")
        if slug != path.stem:
            section.note(
                section.line_of("group"),
                f"group {slug!r} is in {path.name}",
                f"name the file {slug}.yaml or set `group: {path.stem}`",
            )
        reading.remember(Subject.GROUP, path.stem, section)
        found.append(
            Group(
                slug=path.stem,
                name=section.text("name", longest=200, empty=False),
                context=section.text("context"),
                member_delegation=section.flag("member_delegation"),
            )
        )
    return tuple(found)


def _read_settings(top: Section) -> dict[str, object]:
    settings = top.section("settings")
    found: dict[str, object] = {}
    if settings is None:
        return found
    for name in settings:
        if name not in SETTINGS:
            settings.note(
                settings.line_of(name), f"there is no setting {name}", suggest(name, SETTINGS)
            )
            continue
        try:
            found |= checked({name: settings.value(name)})
        except BadSetting as problem:
            settings.note(settings.line_of(name), str(problem), "correct the value")
    return found


def _read_aliases(top: Section, handles: Collection[str]) -> dict[str, str]:
    aliases = top.section("aliases")
    found: dict[str, str] = {}
    if aliases is None:
        return found
    for alias in aliases:
        line = aliases.line_of(alias)
        if alias == BOARD or alias in handles:
            aliases.note(line, f"the alias {alias} is a name already", "choose another alias")
        elif aliases.is_name(alias, line, None, "alias"):
            found[alias] = aliases.name(alias, known=handles, what="agent")
    return {alias: handle for alias, handle in found.items() if handle}


def _read_tool_restrictions(
    top: Section, handles: Collection[str], roles: Collection[str]
) -> tuple[PackToolRestriction, ...]:
    found = []
    if "tightenings" in top and "tool_restrictions" in top:
        top.note(top.line_of("tightenings"), "tool_restrictions are given twice", "keep one key")
    for section in (*top.sections("tool_restrictions"), *top.sections("tightenings")):
        section.allow("tool", "agent", "role", "modes", "reason", required=("tool", "modes"))
        if "agent" in section and "role" in section:
            section.note(section.line, "names both an agent and a role", "keep one of the two")
        scope = "organisation"
        if "agent" in section:
            scope = f"agent:{section.name('agent', known=handles, what='agent')}"
        elif "role" in section:
            scope = f"role:{section.name('role', known=roles, what='role')}"
        tool = section.name("tool", known=frozenset(catalogue.known()) or None, what="tool")
        modes = section.names("modes", known=[mode.value for mode in ToolMode], what="mode")
        found.append(
            PackToolRestriction(
                restriction=ToolRestriction(
                    scope, tool, frozenset(ToolMode(mode) for mode in modes)
                ),
                reason=section.text("reason", longest=500),
            )
        )
    return tuple(found)
