"""The ledger room as a Django app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """What happened: append-only events and their seals."""

    name = "ledger"
    verbose_name = "Ledger"

    def ready(self) -> None:
        """Answer what `core` asks: record a refusal, show a subject's history."""
        from core.admin.base import history_of
        from core.events import record_event
        from core.waiting import register_kinds
        from ledger import waiting
        from ledger.history import events_of
        from ledger.services import record_alone

        history_of.join(events_of)
        record_event.join(record_alone)
        register_kinds(waiting.KINDS)
