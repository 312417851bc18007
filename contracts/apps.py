"""The contracts room as a Django app."""

from django.apps import AppConfig


class ContractsConfig(AppConfig):
    """Contracts as mails with a state machine."""

    name = "contracts"
    verbose_name = "Contracts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Join the hooks of lower rooms: contracts open folders to their assignees."""
        from contracts.scopes import active_scopes
        from toolbox import scopes

        scopes.work_scopes.join(active_scopes)
