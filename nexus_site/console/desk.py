"""What waits for the person who is signed in: asked once for each page, shown on the first."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from core.people import signed_in
from core.waiting import COUNTED, Desk, Viewer

SHOWN = 30
"""Things on the first page; each kind's list shows the rest."""
KEPT = "_nexus_desk"


def desk_of(request: HttpRequest) -> Desk:
    """Everything that waits for this person; the same object for the whole request."""
    kept: Desk | None = getattr(request, KEPT, None)
    if kept is None:
        who = signed_in(request)
        viewer = Viewer(username=who.username, organisations=who.organisations)
        kept = Desk(viewer, request.user.has_perm)
        setattr(request, KEPT, kept)
    return kept


def badge(request: HttpRequest) -> dict[str, Any]:
    """The number next to the first page in the navigation; nothing where nothing waits."""
    waiting = desk_of(request).total
    if not waiting:
        return {}
    return {"badge": shown(waiting), "badge_variant": "danger", "badge_style": "solid"}


def shown(count: int) -> str:
    """A number as people read it; a plus from where counting stops."""
    return f"{COUNTED}+" if count > COUNTED else str(count)


def waiting_figures(request: HttpRequest) -> dict[str, Any]:
    """The first page's list: what waits, oldest first, and how much of each kind."""
    desk = desk_of(request)
    return {
        "turns": desk.turns(SHOWN),
        "waiting": desk.total,
        "waiting_shown": shown(desk.total),
        "waiting_counts": desk.counts.most_common(),
    }
