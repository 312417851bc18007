"""From the files of a pack to a Pack value, with every problem on the way noted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from orgchart.packs.forms import AgentFile, GroupFile, OrganisationFile, ProtocolFile, RolesFile
from orgchart.packs.layout import find_layout
from orgchart.packs.pack import Pack, Staff
from orgchart.packs.placing import place_agents
from orgchart.packs.problems import Notes
from orgchart.packs.schema import validated
from orgchart.packs.source import PackDocument, Place, read_document
from orgchart.packs.values import Known, problem_of_name
from orgchart.policy.compiled import Group
from orgchart.policy.violation import Subject


@dataclass(slots=True)
class Reading:
    """What was read: the pack, the problems, and the place of each thing."""

    notes: Notes = field(default_factory=Notes)
    places: dict[tuple[Subject, str], tuple[PackDocument, Place]] = field(default_factory=dict)
    top: PackDocument | None = None
    pack: Pack | None = None

    def line_of(self, kind: Subject, name: str, *more: str | int) -> tuple[str, int]:
        """The file and line of a thing, or of a place in it; else those of the organisation."""
        document, place = self.places.get((kind, name), (self.top, ()))
        return (document.file, document.line(*place, *more)) if document else ("", 1)


def read_pack(directory: Path, organisation: str = "") -> Reading:
    """Read every file to its end. `pack` is None where a file could not be read or is wrong.

    `organisation` names the organisation of a folder without `organisation.yaml`.
    """
    reading = Reading()
    layout = find_layout(directory, organisation, reading.notes)
    if layout is None:
        return reading
    notes = reading.notes
    top, roles, protocol = layout.top(notes), layout.roles(notes), layout.protocol(notes)
    agents = _documents(layout.agents, notes)
    groups = _documents(layout.groups, notes, may_say_nothing=bool(layout.organisation))
    if layout.organisation and not layout.groups:
        groups = _groups_of(agents)
    if top is None or roles is None or protocol is None:
        return reading
    reading.top = top
    known = Known(
        handles=frozenset(path.stem for path in layout.agents),
        roles=roles.keys("roles"),
        groups=list(groups),
        mail_types=protocol.keys("types"),
    )
    places = reading.places
    places |= {(Subject.ROLE, name): (roles, ("roles", name)) for name in known.roles}
    places |= {(Subject.MAIL_TYPE, name): (protocol, ("types", name)) for name in known.mail_types}
    places |= {(Subject.AGENT, handle): (file, ()) for handle, file in agents.items()}
    places |= {(Subject.GROUP, slug): (file, ()) for slug, file in groups.items()}
    _read_forms(reading, top, roles, protocol, agents, groups, known)
    return reading


def _read_forms(
    reading: Reading,
    top_file: PackDocument,
    roles_file: PackDocument,
    protocol_file: PackDocument,
    agents: Mapping[str, PackDocument],
    groups: Mapping[str, PackDocument],
    known: Known,
) -> None:
    notes = reading.notes
    top = validated(OrganisationFile, top_file, known, notes)
    roles = validated(RolesFile, roles_file, known, notes)
    protocol = validated(ProtocolFile, protocol_file, known, notes)
    rows = [_group(slug, file, known, notes) for slug, file in groups.items()]
    staff = _staff(agents, known, notes)
    if not (top and roles and protocol) or notes.problems:
        return
    for place, rule in protocol.contact_rules().items():
        reading.places[(Subject.CONTACT, rule.label)] = (protocol_file, place)
    reading.pack = Pack(
        organisation=top.organisation,
        name=top.name,
        description=top.description,
        settings=top.settings,
        aliases=top.aliases,
        tool_restrictions=tuple(
            form.restriction() for form in (*top.tool_restrictions, *top.tightenings)
        ),
        roles=tuple(form.role(name) for name, form in roles.roles.items()),
        groups=tuple(group for group in rows if group),
        staff=staff,
        mail_types=tuple(form.rule(name) for name, form in protocol.types.items()),
        contacts=tuple(protocol.contact_rules().values()),
    )


def _documents(
    paths: Iterable[Path], notes: Notes, *, may_say_nothing: bool = False
) -> dict[str, PackDocument]:
    found = {
        path.stem: read_document(path, notes, may_say_nothing=may_say_nothing) for path in paths
    }
    return {stem: document for stem, document in found.items() if document}


def _groups_of(agents: Mapping[str, PackDocument]) -> dict[str, PackDocument]:
    """The groups that agents name, each at the first that does: no folder `groups/` says more."""
    found: dict[str, PackDocument] = {}
    for agent in agents.values():
        name = agent.data.get("group")
        if isinstance(name, str) and not problem_of_name(name, "group"):
            found.setdefault(name, PackDocument(agent.file, {}, {(): agent.line("group")}))
    return found


def _group(slug: str, file: PackDocument, known: Known, notes: Notes) -> Group | None:
    form = validated(GroupFile, file, known, notes)
    if form is None:
        return None
    if form.group not in ("", slug):
        what = f"group {form.group!r} is in {slug}.yaml"
        fix = f"name the file {form.group}.yaml or set `group: {slug}`"
        notes.add(file.file, file.line("group"), what, fix)
    name = form.name or slug.replace("_", " ").title()
    return Group(slug, name, form.context, form.member_delegation)


def _staff(files: Mapping[str, PackDocument], known: Known, notes: Notes) -> tuple[Staff, ...]:
    forms = {
        handle: form
        for handle, file in files.items()
        if (form := validated(AgentFile, file, replace(known, handle=handle), notes))
    }
    return place_agents(forms, files, known, notes)
