"""The mailroom room as a Django app."""

from django.apps import AppConfig


class MailroomConfig(AppConfig):
    """Mail between agents and the firewall around it."""

    name = "mailroom"
    verbose_name = "Mail"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Pass on what the top agent writes for the Board."""
        from documents import board
        from mailroom.outgoing.board_notes import pass_on

        board.note_for_board.join(pass_on)
