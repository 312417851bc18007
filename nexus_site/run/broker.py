"""The embedded broker: messages as files, each of them whole before anybody can see it."""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import structlog
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

log = structlog.get_logger(__name__)


class Channel(filesystem.Channel):
    """Kombu's files, without its gaps.

    Kombu opens a message under its name and then writes it; who reads between the two finds nothing
    in it, and the worker ends. Here a name is given to what is written, and a message is taken by
    giving it another: of many takers one succeeds. The table of an exchange begins the same way.
    """

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        draft = _draft(folder, payload)
        draft.rename(folder / f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg")

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = Path(self.data_folder_in)
        for name in sorted(each.name for each in folder.iterdir()):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = folder / f"{uuid.uuid4()}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:
                continue  # somebody else has it
            payload = taken.read_bytes()
            taken.unlink()
            try:
                return loads(payload)  # type: ignore[no-untyped-call]
            except ValueError:
                log.warning("message_unreadable", message=name)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        table: Path = self._exchange_file(exchange)  # type: ignore[no-untyped-call]
        table.parent.mkdir(exist_ok=True)
        if not table.exists():
            draft = _draft(table.parent, [])
            with suppress(FileExistsError):
                os.link(draft, table)  # unlike a rename, it leaves another's table alone
            draft.unlink()
        super()._queue_bind(exchange, routing_key, pattern, queue)  # type: ignore[no-untyped-call]


class Transport(filesystem.Transport):
    """Kombu's, with these channels."""

    Channel = Channel


def _draft(folder: Path, content: Any) -> Path:
    """A file that nobody looks for, wholly written."""
    draft = folder / f"{uuid.uuid4()}.draft"
    draft.write_text(dumps(content), encoding="utf-8")  # type: ignore[no-untyped-call]
    return draft
