"""The places of agents: what their files say, and what they leave out."""

from __future__ import annotations

from collections.abc import Mapping

from orgchart.packs.forms import AgentFile
from orgchart.packs.layout import LEADER, MEMBER
from orgchart.packs.pack import Staff
from orgchart.packs.problems import Notes
from orgchart.packs.source import PackDocument
from orgchart.packs.values import Known
from orgchart.policy.invariants import circle_in
from orgchart.policy.vocabulary import BOARD


def place_agents(
    forms: Mapping[str, AgentFile], files: Mapping[str, PackDocument], known: Known, notes: Notes
) -> tuple[Staff, ...]:
    """Every agent, by handle; notes what is left out without a default, and circles.

    An agent of a group needs neither `role` nor `reports_to`: it is a group's leader or member. A
    member reports to its leader; a leader to the one agent above all groups, else to the Board.
    """
    members = {handle: form for handle, form in forms.items() if form.group}
    leaders = {form.group: handle for handle, form in members.items() if form.is_leader}
    tops = [h for h, form in forms.items() if form.reports_to == BOARD and not form.group]
    staff = []
    for handle, form in forms.items():
        role = form.role or (LEADER if form.is_leader else MEMBER)
        above = form.reports_to or leaders.get(form.group, "")
        if handle in members and form.is_leader and not form.reports_to:
            above = tops[0] if len(tops) == 1 else BOARD
        file = files[handle]
        if not form.role and not (form.group and role in known.roles):
            notes.add(file.file, file.line(), "role is missing", "add `role: …`")
        if not above:
            fix = "add `is_leader: true` to the agent that leads its group, or add `reports_to: …`"
            fix = fix if form.group else "add `reports_to: …`"
            notes.add(file.file, file.line(), "reports_to is missing", fix)
        staff.append(Staff(handle=handle, **{**dict(form), "role": role, "reports_to": above}))
    _note_circle({one.handle: one.reports_to for one in staff}, files, notes)
    return tuple(staff)


def _note_circle(
    reports_to: dict[str, str], files: Mapping[str, PackDocument], notes: Notes
) -> None:
    circle = circle_in(reports_to)
    for handle in circle:
        notes.add(
            files[handle].file,
            files[handle].line("reports_to"),
            f"reports to itself in a circle: {' -> '.join([*circle, circle[0]])}",
            "let one of them report to another agent",
        )
