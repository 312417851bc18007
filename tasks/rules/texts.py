"""The texts of a task and who wrote each of them last (Spec: tasks 56); pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import Readership

WIRE_NAMES = {"description": "description", "active_form": "activeForm"}
"""The text columns, apart from the subject and the metadata, and their names on the wire."""


def initial_writers(
    writer: int, *, description: str, active_form: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """`text_writers` of a new task: one agent wrote every text that it has."""
    given = {"description": description, "active_form": active_form}
    writers: dict[str, Any] = {name: writer for name, text in given.items() if text}
    if metadata:
        writers["metadata"] = dict.fromkeys(metadata, writer)
    return writers if writer else {}


def changed_writers(task: TaskRow, update: TaskUpdate, writer: int) -> dict[str, Any]:
    """The columns of writers that an update changes: who writes a text last is its writer."""
    values: dict[str, Any] = {}
    if update.subject is not None:
        values["subject_writer"] = writer
    given = {"description": update.description, "active_form": update.active_form}
    written = {name: writer for name, text in given.items() if text is not None}
    keys = dict(task.text_writers.get("metadata", {}))
    for key, value in (update.metadata or {}).items():
        keys.pop(key, None)
        if value is not None:
            keys[key] = writer
    writers = {**task.text_writers, **written, "metadata": keys}
    if writers != {"metadata": {}, **task.text_writers}:
        values["text_writers"] = writers
    return values


def readable_metadata(row: TaskRow, reads: Readership) -> dict[str, Any]:
    """The keys of the metadata that the reader may read, with their values."""
    writers = row.text_writers.get("metadata", {})
    return {key: value for key, value in row.metadata.items() if reads.covers(writers.get(key))}


def unreadable_texts(row: TaskRow, update: TaskUpdate, reads: Readership) -> list[str]:
    """The texts that an update would replace although the reader does not see them, by their names
    on the wire.
    """
    texts = {"description": row.description, "active_form": row.active_form}
    given = {"description": update.description, "active_form": update.active_form}
    writers, keys = row.text_writers, row.text_writers.get("metadata", {})
    hidden = ["subject"] if update.subject is not None and not reads.covers_task(row) else []
    hidden += [
        WIRE_NAMES[name]
        for name, text in given.items()
        if text is not None and texts[name] and not reads.covers(writers.get(name))
    ]
    replaced = row.metadata.keys() & (update.metadata or {}).keys()
    if not all(reads.covers(keys.get(key)) for key in replaced):
        hidden.append("metadata")  # which key it is would be the other agent's text
    return hidden


def withheld_texts(row: TaskRow, reads: Readership) -> list[str]:
    """The fields, by their names on the wire, of which the reader does not see all."""
    columns = {"description": row.description, "active_form": row.active_form}
    hidden = [
        WIRE_NAMES[name]
        for name, text in columns.items()
        if text and not reads.covers(row.text_writers.get(name))
    ]
    if not reads.covers_task(row):
        hidden.append("subject")
    if len(readable_metadata(row, reads)) < len(row.metadata):
        hidden.append("metadata")
    return hidden
