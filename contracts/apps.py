"""The contracts room as a Django app."""

from django.apps import AppConfig


class ContractsConfig(AppConfig):
    """Contracts as mails with a state machine."""

    name = "contracts"
    verbose_name = "Contracts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Answer which folders an agent's contracts open, for the rooms that ask."""
        from contracts.reading import active_scopes
        from toolbox import scopes

        scopes.register(active_scopes)
