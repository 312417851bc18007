"""Which deployments wait for a person: those whose outcome is not known."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from workspace.builds.models import Deployment, replaced
from workspace.builds.vocabulary import DeploymentState


def _unknown(viewer: Viewer) -> QuerySet[Any]:
    """Those that no later deployment of the service in the environment has replaced."""
    rows = Deployment.objects.filter(~replaced(), state=DeploymentState.UNKNOWN)
    return viewer.sees(rows).select_related("organisation", "deployed_by")


def _show(row: Deployment) -> Waiting:
    return Waiting(
        title=gettext("%(service)s in %(environment)s")
        % {"service": row.service, "environment": row.environment},
        asked_by=row.deployed_by.handle,
        since=row.settled_at,
        detail=row.problem[:200],
    )


KINDS = (
    WaitingKind(
        title=_("Deployment without a known end"),
        icon="rocket_launch",
        deed=Deed.SETTLE_DEPLOYMENT,
        rows=_unknown,
        since="settled_at",
        show=_show,
        choices=(
            Choice(_("Ask the engine again"), "look-again"),
            Choice(_("Record as failed"), "failed", is_danger=True),
        ),
    ),
)
