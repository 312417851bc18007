"""The workspace room as a Django app."""

from django.apps import AppConfig


class WorkspaceConfig(AppConfig):
    """Hands: files, git, tests, builds, web."""

    name = "workspace"
    verbose_name = "Workspace"
    default_auto_field = "django.db.models.BigAutoField"
