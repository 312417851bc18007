"""The places of agents: what their files say, and what they leave out."""

from __future__ import annotations

from collections.abc import Mapping

from orgchart.packs.forms import AgentFile
from orgchart.packs.layout import LEADER, MEMBER
from orgchart.packs.pack import Staff
from orgchart.packs.problems import Notes
from orgchart.packs.source import Document
from orgchart.packs.values import Known
from orgchart.policy.invariants import circle_in
from orgchart.policy.vocabulary import BOARD


def place_agents(
    forms: Mapping[str, AgentFile], files: Mapping[str, Document], known: Known, notes: Notes
) -> tuple[Staff, ...]:
    """Every agent, by handle; notes what is left out without a default, and circles.

    An agent of a group needs neither `role` nor `reports_to`: it is a group's leader or member. A
    member reports to its leader; a leader to the one agent above all groups, else to the Board.
    """
    leaders = {form.group: handle for handle, form in forms.items() if form.is_leader}
    tops = [h for h, form in forms.items() if form.reports_to == BOARD and not form.group]
    staff = []
    for handle, form in forms.items():
        values = dict(form)
        role = (LEADER if form.is_leader else MEMBER) if form.group else ""
        above = leaders.get(form.group, BOARD) if form.group else ""
        if above and form.is_leader:
            above = tops[0] if len(tops) == 1 else BOARD
        values["role"] = form.role or (role if role in known.roles else "")
        values["reports_to"] = form.reports_to or above
        for key in ("role", "reports_to"):
            if not values[key]:
                file = files[handle]
                notes.add(file.file, file.line(), f"{key} is missing", f"add `{key}: …`")
        staff.append(Staff(handle=handle, **values))
    _note_circle({one.handle: one.reports_to for one in staff}, files, notes)
    return tuple(staff)


def _note_circle(reports_to: dict[str, str], files: Mapping[str, Document], notes: Notes) -> None:
    circle = circle_in(reports_to)
    for handle in circle:
        notes.add(
            files[handle].file,
            files[handle].line("reports_to"),
            f"reports to itself in a circle: {' -> '.join([*circle, circle[0]])}",
            "let one of them report to another agent",
        )
