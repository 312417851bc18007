"""The admin of frames: which agent waits for which, and cancelling by the Board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import block, chips, choice_column, computed_column, shown_column
from core.database import database_now
from core.events import text
from core.ids import row_id
from core.people import signed_in
from core.permissions import Deed
from orgchart.people.members import visible_agents
from toolbox.frames.ending import cancel_frame
from toolbox.frames.vocabulary import UNENDED
from toolbox.models import Frame

SHOWN = 200
"""Frames of the open stacks on one page, and children of one frame."""


def _cancel(call: ActRequest) -> Answer:
    cancel_frame(frame_id=call.row.id, caller=call.person, reason=call.reason, now=call.now)
    return gettext("%(frame)s is cancelled; %(agent)s is notified.") % {
        "frame": call.row,
        "agent": call.row.opener.handle,
    }


CANCEL = Act(
    name="cancel",
    title=_("Cancel"),
    icon="cancel",
    danger=True,
    deed=Deed.CANCEL_FRAME,
    explanation=_(
        "The agent that opened it gets a failure with your reason instead of a result. Work that "
        "was delegated from inside it is cancelled too, and its assignees are notified."
    ),
    perform=_cancel,
    facts=lambda row: [
        (pgettext("sender", "From"), row.opener.handle),
        (pgettext("recipient", "To"), row.assignee.handle),
    ],
    text=lambda row: row.instruction,
    possible=lambda row: row.state in UNENDED,
)


@admin.register(Frame)
class FrameAdmin(ActingAdmin):
    """Delegations and skills: which agent asked which, and the result."""

    acts = (CANCEL,)
    list_display = ("work", "organisation", "opener", "assignee", "depth", "status", "due_at")
    list_filter = ("organisation", "opener", "assignee", "kind", "state", "opened_at")
    list_select_related = ("organisation", "opener", "assignee")
    list_without = ("context", "result")
    list_before_template = "admin/nexus/frames.html"
    dated_by = "opened_at"
    search_fields = ("id",)
    search_help_text = _("A frame's number, or the handle of its opener or assignee")
    fields = (
        "organisation",
        "kind",
        "name",
        "opener",
        "assignee",
        "status",
        "below",
        "above",
        "asked",
        "context",
        "tools",
        "result",
        "reason",
        "opened_at",
        "due_at",
        "taken_at",
        "ended_at",
        "result_read_at",
    )

    def find(self, request: HttpRequest, rows: QuerySet[Frame], term: str) -> QuerySet[Frame]:
        """By number, or by a party."""
        frame = row_id(term)
        if frame is not None:
            return rows.filter(id=frame)
        agents = visible_agents(signed_in(request), term)
        return rows.filter(Q(opener__in=agents) | Q(assignee__in=agents))

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """A tree of the open stacks, above the frames."""
        found = list(
            _with_agents(self.get_queryset(request).filter(state__in=UNENDED)).order_by("id")[
                : SHOWN + 1
            ]
        )
        return {
            "tree": tree(found[:SHOWN], now=database_now()),
            "shown": min(len(found), SHOWN),
            "more": len(found) > SHOWN,
        }

    work = computed_column(_("work"), lambda row: text(row.name or row.instruction, 70))

    status = choice_column(
        "state",
        _("state"),
        {
            "open": "info",
            "taken": "primary",
            "returned": "success",
            "failed": "danger",
            "cancelled": "default",
        },
    )

    below = computed_column(_("opened inside"), lambda row: _list(reversed(list(_parents(row)))))

    above = computed_column(
        _("opened from it"),
        lambda row: _list(_with_agents(Frame.objects.filter(parent=row)).order_by("id")[:SHOWN]),
    )

    asked = shown_column("instruction", _("instruction"), block)

    tools = computed_column(
        _("allowed tools"),
        lambda row: chips(
            row.allowed_tools, gettext("not restricted") if row.allowed_tools is None else ""
        ),
    )


def tree(frames: Iterable[Frame], *, now: datetime) -> SafeString:
    """Frames as nested lists, each under the one it was opened inside."""
    found = list(frames)
    known = {frame.id for frame in found}
    inside: dict[int | None, list[Frame]] = {}
    for frame in found:
        inside.setdefault(frame.parent_id if frame.parent_id in known else None, []).append(frame)
    return _branch(inside, None, now)


def _branch(inside: dict[int | None, list[Frame]], at: int | None, now: datetime) -> SafeString:
    rows = inside.get(at)
    if not rows:
        return SafeString("")
    items = ((_line(frame, now), _branch(inside, frame.id, now)) for frame in rows)
    return format_html('<ul class="nx-list">{}</ul>', format_html_join("", "<li>{}{}</li>", items))


def _line(frame: Frame, now: datetime | None = None) -> SafeString:
    """A frame in one line; with `now` also the time it has left."""
    state = frame.get_state_display()
    if now is not None and frame.due_at > now:
        left = timeuntil(frame.due_at, now)
        state = gettext("%(state)s, %(time)s left") % {"state": state, "time": left}
    elif now is not None:
        state = gettext("%(state)s, its time is over") % {"state": state}
    return format_html(
        '<a href="{}">{}</a> {} → {}: {} <span class="nx-quiet">({})</span>',
        reverse("admin:toolbox_frame_change", args=[frame.id]),
        str(frame),
        frame.opener.handle,
        frame.assignee.handle,
        text(frame.name or frame.instruction, 70),
        state,
    )


def _list(frames: Iterable[Frame]) -> SafeString:
    items = format_html_join("", "<li>{}</li>", ((_line(frame),) for frame in frames))
    return format_html('<ul class="nx-list">{}</ul>', items) if items else SafeString("–")


def _parents(row: Frame) -> Iterator[Frame]:
    """The frames below one, the nearest first: at most seven."""
    at = row.parent_id
    while at is not None:
        frame = _with_agents(Frame.objects.filter(id=at)).get()
        yield frame
        at = frame.parent_id


def _with_agents(rows: QuerySet[Frame]) -> QuerySet[Frame]:
    return rows.select_related("opener", "assignee").defer("context", "result")
