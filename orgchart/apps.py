"""The orgchart room as a Django app."""

from django.apps import AppConfig


class OrgchartConfig(AppConfig):
    """Who is who and who may what."""

    name = "orgchart"
    verbose_name = "Organisation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Answer who is a member of what; register the changes that wait for a second person."""
        from core.waiting import register_kinds
        from orgchart.pending import waiting
        from orgchart.people import members  # noqa: F401  joins the hooks

        register_kinds(waiting.KINDS)
