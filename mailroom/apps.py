"""The mailroom room as a Django app."""

from django.apps import AppConfig


class MailroomConfig(AppConfig):
    """Mail between agents and the firewall around it."""

    name = "mailroom"
    verbose_name = "Mail"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Join the hook of notes for the Board."""
        from documents import board
        from mailroom.outgoing.board_notes import send_note_to_board

        board.note_for_board.join(send_note_to_board)
