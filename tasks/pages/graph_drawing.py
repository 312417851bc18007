"""The drawing of dependencies for the template: boxes, lines and a description."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import east_asian_width

from django.utils.translation import gettext, ngettext

from tasks.pages.graph_layout import BOX_HEIGHT, BOX_WIDTH, GraphLine, lay_out
from tasks.pages.neighbourhood import Neighbour, Neighbourhood

COLUMNS, LINES = 27, 2
"""Of a subject in a box; a Chinese character takes two columns."""
OWNER_COLUMNS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One drawn task: where, how coloured (`look` is a class of the style sheet), and its texts."""

    task: Neighbour
    x: int
    y: int
    look: str
    state: str
    subject: tuple[str, ...]
    owner: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDrawing:
    """A drawing ready for the template. `remarks` say what is left out."""

    boxes: tuple[Box, ...]
    lines: tuple[GraphLine, ...]
    width: int
    height: int
    box_width: int
    box_height: int
    words: str
    remarks: tuple[str, ...]


def draw(found: Neighbourhood) -> GraphDrawing:
    """Draw a task's neighbourhood."""
    layout = lay_out(found.focus, found.edges)
    left = layout.spots[found.focus].x
    boxes = [
        _box(found.tasks[pk], spot.x, spot.y, focus=pk == found.focus)
        for pk, spot in layout.spots.items()
    ]
    before = sum(spot.x < left for spot in layout.spots.values())
    after = sum(spot.x > left for spot in layout.spots.values())
    return GraphDrawing(
        boxes=tuple(sorted(boxes, key=lambda box: (box.x, box.y))),
        lines=layout.lines,
        width=layout.width,
        height=layout.height,
        box_width=BOX_WIDTH,
        box_height=BOX_HEIGHT,
        words=gettext(
            "Task #%(task)s in the middle, %(before)s that come before it to the left, "
            "%(after)s that wait for it to the right."
        )
        % {
            "task": found.tasks[found.focus].number,
            "before": _tasks(before),
            "after": _tasks(after),
        },
        remarks=tuple(_remarks(found, layout.implied)),
    )


def _box(task: Neighbour, x: int, y: int, *, focus: bool) -> Box:
    state = gettext(task.status.replace("_", " "))
    if task.waits:
        state = f"{state} · {gettext('waits')}"
    looks = [f"tg-{task.status}", *(["tg-waits"] if task.waits else []), *(["tg-focus"] * focus)]
    owner = task.owner or gettext("none")
    return Box(
        task=task,
        x=x,
        y=y,
        look=" ".join(looks),
        state=state,
        subject=cut(task.subject, COLUMNS, LINES),
        owner=cut(owner, OWNER_COLUMNS, 1)[0],
        words=gettext("#%(task)s %(subject)s: %(state)s, owner %(owner)s")
        % {"task": task.number, "subject": task.subject, "state": state, "owner": owner},
    )


def _tasks(count: int) -> str:
    return ngettext("%(count)s task", "%(count)s tasks", count) % {"count": count}


def _remarks(found: Neighbourhood, implied: int) -> list[str]:
    remarks = []
    if not found.whole:
        remark = gettext("Only the nearest %(count)s tasks are drawn; there are more.")
        remarks.append(remark % {"count": len(found.tasks)})
    if implied:
        remark = ngettext(
            "One dependency that follows from the lines drawn is left out.",
            "%(count)s dependencies that follow from the lines drawn are left out.",
            implied,
        )
        remarks.append(remark % {"count": implied})
    return remarks


def cut(text: str, columns: int, lines: int) -> tuple[str, ...]:
    """Break a text into at most `lines` lines of `columns` columns; '…' ends a longer text.

    Breaks between words where a line has one, and within words that are longer than a line.
    """
    rest, found = " ".join(text.split()), list[str]()
    while rest and len(found) < lines:
        head = _fitting(rest, columns)
        if head == len(rest):
            found.append(rest)
            return tuple(found)
        if len(found) == lines - 1:
            found.append(rest[: _fitting(rest, columns - 1)].rstrip() + "…")
            return tuple(found)
        space = rest.rfind(" ", 0, head + 1)
        broken = space if space > 0 else head
        found.append(rest[:broken].rstrip())
        rest = rest[broken:].lstrip()
    return tuple(found) or ("",)


def _fitting(text: str, columns: int) -> int:
    """How many characters of the text fit."""
    used = 0
    for place, character in enumerate(text):
        used += 2 if east_asian_width(character) in "WF" else 1
        if used > columns:
            return place
    return len(text)
