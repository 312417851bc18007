"""The mailroom room as a Django app."""

from django.apps import AppConfig


class MailroomConfig(AppConfig):
    """Mail between agents and the firewall around it."""

    name = "mailroom"
    verbose_name = "Mail"

    def ready(self) -> None:
        """Join the hooks of notes for the Board and of what waits for people."""
        from core.waiting import register_kinds
        from documents import board_notes
        from mailroom import waiting
        from mailroom.outgoing.board_notes import send_note_to_board

        board_notes.note_for_board.join(send_note_to_board)
        register_kinds(waiting.KINDS)
