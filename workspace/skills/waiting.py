"""Which skills wait for people: files that are not approved as they are now."""

from __future__ import annotations

from typing import Any

from django.db.models import F, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from workspace.models import Skill


def _unapproved(viewer: Viewer) -> QuerySet[Any]:
    """Skills belong to the installation: members of every organisation approve them."""
    if viewer.organisations is not None:
        return Skill.objects.none()
    rows = Skill.objects.filter(installed=True, problem="").exclude(digest="")
    return rows.exclude(approved_digest=F("digest")).defer("text")


def _show(row: Skill) -> Waiting:
    return Waiting(
        title=row.name,
        asked_by=row.path,
        since=row.seen_at,
        detail=gettext("The file changed after its approval")
        if row.approved_digest
        else row.description,
    )


KINDS = (
    WaitingKind(
        title=_("Skill to approve"),
        icon="extension",
        deed=Deed.APPROVE_SKILL,
        rows=_unapproved,
        since="seen_at",
        show=_show,
        choices=(Choice(_("Read and approve"), "approve"),),
    ),
)
