"""Reading agents/<handle>.yaml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from orgchart.packs.fields import Section
from orgchart.packs.pack import Staff
from orgchart.packs.roles import Remember
from orgchart.policy.invariants import circle_in
from orgchart.policy.violation import Subject
from orgchart.policy.vocabulary import BOARD

KEYS = (
    "role",
    "title",
    "active",
    "reports_to",
    "co_managers",
    "group",
    "name",
    "is_leader",
    "skills",
    "system_prompt",
    "job_description",
)


@dataclass(frozen=True, slots=True)
class Known:
    """Names that an agent's file may refer to."""

    handles: Collection[str]
    roles: Collection[str]
    groups: Collection[str]


def read_staff(files: Mapping[str, Section], known: Known, remember: Remember) -> tuple[Staff, ...]:
    """Every agent, by handle; a circle of who reports to whom is noted at each that is in it."""
    staff = []
    for handle, section in files.items():
        remember(Subject.AGENT, handle, section)
        staff.append(_one(handle, section, known))
    circle = circle_in({one.handle: one.reports_to for one in staff})
    for handle in circle:
        files[handle].note(
            files[handle].line_of("reports_to"),
            f"reports to itself in a circle: {' -> '.join([*circle, circle[0]])}",
            "let one of them report to another agent",
        )
    return tuple(staff)


def _one(handle: str, section: Section, known: Known) -> Staff:
    section.allow(*KEYS, required=("role", "reports_to"))
    above = {*known.handles, BOARD} - {handle}
    one = Staff(
        handle=handle,
        role=section.name("role", known=known.roles),
        title=section.text("title", longest=200),
        active=section.flag("active", default=True),
        reports_to=section.name("reports_to", known=above, what="superior") or BOARD,
        co_managers=section.names("co_managers", known=above - {BOARD}, what="co-manager"),
        group=section.name("group", known=known.groups),
        name=section.name("name"),
        is_leader=section.flag("is_leader"),
        skills=section.names("skills", what="skill"),
        system_prompt=section.text("system_prompt"),
        job_description=section.text("job_description"),
    )
    if ("group" in section) != ("name" in section):
        missing = "group" if "name" in section else "name"
        section.note(section.line, f"{missing} is missing", "an address is `group.name`: give both")
    if one.reports_to in one.co_managers:
        line = section.line_of("co_managers")
        section.note(line, f"{one.reports_to} is its superior already", "name other co-managers")
    if one.is_leader and not one.active:
        line = section.line_of("is_leader")
        section.note(line, "an agent that is not active leads no group", "set `is_leader: false`")
    return one
