"""The orgchart room as a Django app."""

from django.apps import AppConfig


class OrgchartConfig(AppConfig):
    """Who is who and who may what."""

    name = "orgchart"
    verbose_name = "Organisation"
    default_auto_field = "django.db.models.BigAutoField"
