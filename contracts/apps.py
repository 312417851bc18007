"""The contracts room as a Django app."""

from django.apps import AppConfig


class ContractsConfig(AppConfig):
    """Contracts as mails with a state machine."""

    name = "contracts"
    verbose_name = "Contracts"

    def ready(self) -> None:
        """Join the hooks of lower rooms: folders and sessions of contracts, submissions by mail."""
        from contracts import store, waiting
        from contracts.reassignment import hand_over_contracts
        from contracts.scopes import work_scopes
        from contracts.services import submit_by_mail
        from contracts.session_contract import session_of_contract
        from contracts.verdict_conflicts import require_verdicts_kept
        from core.waiting import register_kinds
        from mailroom import references, services
        from orgchart.services import policy_changing, roles_changed
        from toolbox import scopes, sessions

        scopes.work_scopes.join(work_scopes)
        sessions.contract_sessions.join(session_of_contract)
        references.party_of_contract.join(store.is_party)
        services.submissions.join(submit_by_mail)
        policy_changing.join(require_verdicts_kept)
        roles_changed.join(hand_over_contracts)
        register_kinds(waiting.KINDS)
