"""The hook for notes to the Board."""

from datetime import datetime

from core.hooks import Hook
from documents.models import Document
from toolbox.caller import Caller

note_for_board = Hook[[Caller, Document, datetime], None](
    "notify the Board of a note, in the transaction that writes it"
)
