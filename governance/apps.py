"""The governance room as a Django app."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    """Constitution cases and the Board's desk."""

    name = "governance"
    verbose_name = "Governance"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Hand over what agents hold when a pack has them no more."""
        from governance.staff import holdings
        from orgchart import staffing

        staffing.when_leaving(holdings.handed_over)
