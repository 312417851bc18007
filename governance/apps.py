"""The governance room as a Django app."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    """Constitution cases and interventions of the Board."""

    name = "governance"
    verbose_name = "Governance"

    def ready(self) -> None:
        """Reassign the work of agents that a pack removes; keep what people do elsewhere."""
        from core.interventions import intervened
        from core.waiting import register_kinds
        from governance.cases import waiting
        from governance.interventions.records import insert_intervention
        from governance.staff import by_contract, open_work
        from orgchart import services, staffing

        services.allow_by_contract.join(by_contract.allow_by_contract)
        staffing.reassign_work.join(open_work.reassign_on_leaving)
        intervened.join(insert_intervention)
        register_kinds(waiting.KINDS)
