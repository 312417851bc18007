"""Whether each event that the suite puts on a stream is of the type that the API describes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from core.actions import Action
from core.events import Event
from ledger import sql
from toolbox.faces.stream_events import STREAM_EVENTS

DETAILS = {(event.kind, event.action): TypeAdapter(event.details) for event in STREAM_EVENTS}
NEVER_STREAMED = frozenset({Action.TASK_WARNED})
"""Put on the stream of who did it, who sees only what others did."""


def problem_of(event: Event) -> str:
    """What an agent would see on its stream that the description does not say; '' if nothing."""
    is_shown = bool(event.kind and event.for_agent_id) and event.action not in NEVER_STREAMED
    if not is_shown or event.action not in set(Action):
        return ""
    adapter = DETAILS.get((event.kind, event.action))
    if adapter is None:
        return f"{event.kind} {event.action} is not among STREAM_EVENTS"
    try:
        adapter.validate_json(to_json(dict(event.details)), strict=True)
    except ValidationError as wrong:
        return f"{event.action}: {wrong}"
    return ""


@contextmanager
def every_event_checked(found: list[str]) -> Iterator[None]:
    """Collect what is wrong with the events that are recorded meanwhile."""
    real = sql.fields

    def checked(event: Event) -> dict[str, Any]:
        if problem := problem_of(event):
            found.append(problem)
        return real(event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql, "fields", checked)
        yield
