"""Who tells the Board of a note that is for it; rooms above answer, this one calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from documents.models import Document
from toolbox.caller import Caller

Messenger = Callable[[Caller, Document, datetime], None]

_messengers: list[Messenger] = []


def register(messenger: Messenger) -> None:
    """Add a messenger: it is called in the transaction that writes a note for the Board."""
    if messenger not in _messengers:
        _messengers.append(messenger)


def tell_board(caller: Caller, note: Document, now: datetime) -> None:
    """Let every messenger pass the note on (seed 000 §4.4)."""
    for messenger in _messengers:
        messenger(caller, note, now)
