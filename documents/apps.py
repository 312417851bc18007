"""The documents room as a Django app."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """The company tree: notes, reports, PRDs."""

    name = "documents"
    verbose_name = "Documents"
    default_auto_field = "django.db.models.BigAutoField"
