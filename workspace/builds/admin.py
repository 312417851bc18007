"""The humans' face of builds: images and deployments, to look at."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import BrowseAdmin, block, choice_column, shown_column
from core.admin.browsing import PrefixFilter, filter_by
from core.permissions import Deed
from workspace.builds.models import Deployment, ImageBuild
from workspace.builds.settling import look_again, record_as_failed, take_down
from workspace.builds.vocabulary import DEPLOYMENT_ID, MAY_RUN, DeploymentState

STATES = {
    "succeeded": "success",
    "failed": "danger",
    "unknown": "warning",
    "started": "info",
    "removed": "info",
}


ANSWERED = {
    DeploymentState.STARTED: _("The engine says that it is not over yet."),
    DeploymentState.SUCCEEDED: _("The engine says how it ended: succeeded."),
    DeploymentState.FAILED: _("The engine says how it ended: failed."),
    DeploymentState.UNKNOWN: _("The engine did not answer; how it ended is still unknown."),
}


def _look_again(call: ActRequest) -> Answer:
    state = look_again(
        deployment_id=call.row.id, person=call.person, reason=call.reason, now=call.now
    )
    return str(ANSWERED[state])


def _record_as_failed(call: ActRequest) -> Answer:
    record_as_failed(
        deployment_id=call.row.id, person=call.person, reason=call.reason, now=call.now
    )
    return gettext("%(deployment)s is recorded as failed.") % {"deployment": call.row}


def _take_down(call: ActRequest) -> Answer:
    take_down(deployment_id=call.row.id, person=call.person, reason=call.reason, now=call.now)
    return gettext("%(deployment)s is taken down.") % {"deployment": call.row}


def _is_open(row: Deployment) -> bool:
    return row.state == DeploymentState.UNKNOWN and not row.is_replaced


def _facts(row: Deployment) -> list[tuple[str, str]]:
    return [(gettext("Service"), row.service), (gettext("Environment"), row.environment)]


LOOK_AGAIN = Act(
    name="look-again",
    title=_("Ask the engine again"),
    icon="refresh",
    deed=Deed.SETTLE_DEPLOYMENT,
    explanation=_(
        "The container engine is asked whether the container of this deployment runs. If it does, "
        "what ran before in its place is removed; if not, its remains are removed."
    ),
    perform=_look_again,
    facts=_facts,
    possible=_is_open,
)
FAILED = Act(
    name="failed",
    title=_("Record as failed"),
    icon="cancel",
    danger=True,
    deed=Deed.SETTLE_DEPLOYMENT,
    explanation=_(
        "Use this when you have looked at the machine yourself and the deployment does not run. "
        "Nothing is done on the machine."
    ),
    perform=_record_as_failed,
    facts=_facts,
    possible=_is_open,
)
TAKE_DOWN = Act(
    name="take-down",
    title=_("Take service down"),
    icon="stop_circle",
    danger=True,
    deed=Deed.TAKE_DOWN,
    explanation=_(
        "The container of this service is stopped and removed, and its place is free for another "
        "service. The service runs again when an agent deploys it again."
    ),
    perform=_take_down,
    facts=_facts,
    possible=lambda row: row.state in MAY_RUN and row.is_current,
)


BY_SERVICE = filter_by(PrefixFilter, "service", _("service"))


@admin.register(Deployment)
class DeploymentAdmin(ActingAdmin):
    """Every deployment: what was started where, by which approval, and how it ended."""

    acts = (LOOK_AGAIN, FAILED, TAKE_DOWN)
    list_display = (
        "id", "service", "environment", "shown_state", "deployed_by", "approval", "settled_at"
    )  # fmt: skip
    list_filter = ("state", BY_SERVICE, "started_at")
    list_select_related = ("deployed_by", "approval")
    dated_by = "started_at"
    search_fields = ("id", "artifact")
    search_help_text = _("A deployment (DEP-…), or a part of an image's name")
    fields = (
        "id", "service", "environment", "shown_state", "words", "artifact", "approval",
        "deployed_by", "started_at", "settled_at",
    )  # fmt: skip

    def find(
        self, request: HttpRequest, rows: QuerySet[Deployment], term: str
    ) -> QuerySet[Deployment] | None:
        """By id; else by a part of the image's name, among the newest."""
        return rows.filter(id__startswith=term) if term.startswith(f"{DEPLOYMENT_ID}-") else None

    shown_state = choice_column("state", _("state"), STATES)
    words = shown_column("problem", _("what happened"), block)


@admin.register(ImageBuild)
class ImageBuildAdmin(BrowseAdmin):
    """Every image that was built here."""

    subject = "image:{row.tag}"
    list_display = ("tag", "service", "digest", "built_by", "built_at")
    list_filter = (BY_SERVICE, "built_at")
    list_select_related = ("built_by",)
    dated_by = "built_at"
    search_fields = ("digest", "tag")
    fields = ("tag", "service", "digest", "path", "contract_ref", "built_by", "built_at")
