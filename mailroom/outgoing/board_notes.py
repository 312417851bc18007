"""How a note that the top agent writes for the Board reaches it (Spec: escalation 5)."""

from __future__ import annotations

from datetime import datetime

from core.actions import Action
from core.language import gettext_noop
from core.limits import MAX_MAIL_BODY
from core.wording import Wording
from documents.models import Document
from mailroom.delivery import send_as
from mailroom.outgoing.outbox import notify_board
from orgchart.policy.parties import BOARD_PARTY
from toolbox.caller import Caller

SUBJECT = gettext_noop("%(agent)s writes to the Board: %(title)s")
SHOWN = 2000
"""Characters of a note that the notice carries; the admin shows the whole note."""
GOES_ON = "\n\n… The note is longer than a mail: the whole of it is at its path."


def send_note_to_board(caller: Caller, note: Document, now: datetime) -> None:
    """Insert a mail and a notice to the Board, in the transaction of the note.

    The mail waits until a person of the Board answers it or marks it as read.
    """
    send_as(
        caller=caller,
        recipient=BOARD_PARTY,
        mail_type="info",
        subject=note.title,
        body=_as_mail(note),
        now=now,
        rule="a note for the Board",
    )
    notify_board(
        policy=caller.policy,
        event=Action.NOTE_FOR_BOARD,
        subject=Wording(SUBJECT, {"agent": caller.handle, "title": note.title}),
        body=note.body[:SHOWN],
        data={"document": str(note.id), "path": note.path, "from": caller.handle},
        caller=caller,
        now=now,
    )


def _as_mail(note: Document) -> str:
    whole = f"{note.path}\n\n{note.body}"
    if len(whole) <= MAX_MAIL_BODY:
        return whole
    return whole[: MAX_MAIL_BODY - len(GOES_ON)] + GOES_ON
