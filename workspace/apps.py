"""The workspace room as a Django app."""

from django.apps import AppConfig


class WorkspaceConfig(AppConfig):
    """Hands: files, git, tests, builds, web."""

    name = "workspace"
    verbose_name = "Workspace"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Say what is doubtful about the skills of a pack."""
        from orgchart.packs.checking import doubts_about_skill
        from workspace.skills.doubts import doubts_about

        doubts_about_skill.join(doubts_about)
