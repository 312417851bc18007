"""The orgchart room as a Django app."""

from django.apps import AppConfig


class OrgchartConfig(AppConfig):
    """Who is who and who may what."""

    name = "orgchart"
    verbose_name = "Organisation"

    def ready(self) -> None:
        """Answer who is a member of what and how facts read; register the changes that wait."""
        from core.admin.happened import fact_in_language
        from core.waiting import register_kinds
        from orgchart.difference_words import in_language
        from orgchart.people import members  # noqa: F401  joins the hooks
        from orgchart.second_person import waiting

        fact_in_language.join(in_language)
        register_kinds(waiting.KINDS)
