"""The governance room as a Django app."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    """Constitution cases and the Board's desk."""

    name = "governance"
    verbose_name = "Governance"
    default_auto_field = "django.db.models.BigAutoField"
