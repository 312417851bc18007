"""The ledger room as a Django app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """What happened: append-only events and their seals."""

    name = "ledger"
    verbose_name = "Ledger"
    default_auto_field = "django.db.models.BigAutoField"
