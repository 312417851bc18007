"""The humans' face of builds: images and deployments, to look at."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from core.admin.base import BrowseAdmin, block, column
from core.admin.browsing import MomentFilter, PrefixFilter
from workspace.builds.models import Deployment, ImageBuild

STATES = {"succeeded": "success", "failed": "danger", "unknown": "warning", "started": "info"}


class ServiceFilter(PrefixFilter):
    """By the beginning of the service's name."""

    title = "service"
    parameter_name = "service"


@admin.register(Deployment)
class DeploymentAdmin(BrowseAdmin):
    """Every deployment: what was started where, by which approval, and how it ended."""

    list_display = (
        "id", "service", "environment", "shown_state", "deployed_by", "approval", "settled_at"
    )  # fmt: skip
    list_filter = (("state", ChoicesDropdownFilter), ServiceFilter, ("started_at", MomentFilter))
    list_select_related = ("deployed_by", "approval")
    search_fields = ("id", "artifact")
    fields = (
        "id", "service", "environment", "shown_state", "words", "artifact", "approval",
        "deployed_by", "started_at", "settled_at",
    )  # fmt: skip

    @column("state", label=STATES)
    def shown_state(self, row: Deployment) -> str:
        """How far it is, in colour."""
        return str(row.state)

    @column("what went wrong")
    def words(self, row: Deployment) -> SafeString:
        """The engine's and the container's words, escaped."""
        return block(row.problem)


@admin.register(ImageBuild)
class ImageBuildAdmin(BrowseAdmin):
    """Every image that was built here."""

    list_display = ("tag", "service", "digest", "built_by", "built_at")
    list_filter = (ServiceFilter, ("built_at", MomentFilter))
    list_select_related = ("built_by",)
    search_fields = ("digest", "tag")
    fields = ("tag", "service", "digest", "path", "contract_ref", "built_by", "built_at")

    def subject_of(self, row: ImageBuild) -> str:
        """How the ledger names it."""
        return f"image:{row.tag}"
