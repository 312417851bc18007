"""From a page's bytes to readable text, within a time that no markup extends."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock

from django.conf import settings

from workspace.outside_calls import PLACES
from workspace.web import extractor
from workspace.web.fetching import FetchedPage, unreachable
from workspace.web.rules import HTML

MOST_TEXT = 100_000
"""Characters of text in one answer."""
LONGEST = 15.0
"""Seconds that a page may take; it waits for as many others as there are places."""
STARTING = 60.0
"""Seconds that the program may take to start."""
KEPT_NAMES = ("PATH", "LANG", "PYTHONPYCACHEPREFIX")
"""Variables that the program gets. It reads what strangers wrote, so it knows no secret."""


def readable(page: FetchedPage) -> tuple[str, str, bool]:
    """Title and text of a page, and whether the text was cut. Markup is left out.

    Raises Denied DRIVER_UNAVAILABLE for markup that takes too long, or too much memory.
    """
    if page.kind not in HTML:
        source = page.body.decode(page.charset or "utf-8", "replace")
        return "", source[:MOST_TEXT], page.cut or len(source) > MOST_TEXT
    try:
        title, text, is_whole = EXTRACTOR.ask(page.body, charset=page.charset, most=MOST_TEXT)
    except (OSError, EOFError) as problem:
        why = "its text cannot be taken out of its markup in time"
        raise unreachable(page.url, why) from problem
    return title, text[:MOST_TEXT], page.cut or not is_whole or len(text) > MOST_TEXT


class Extractor:
    """The program of this process: started for the first page, and again where it was ended."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def ask(self, body: bytes, *, charset: str, most: int) -> tuple[str, str, bool]:
        """Title and text of a page, and whether it was read to its end.

        Raises OSError or EOFError where there is none in time.
        """
        if not self._turn.acquire(timeout=LONGEST * PLACES.most):
            raise TimeoutError
        try:
            connection = self._connection()
            question = json.dumps({"charset": charset, "most": most}).encode()
            connection.send_bytes(question + b"\n" + body)
            found = json.loads(_answer(connection, LONGEST))
        except BaseException:
            self.end()
            raise
        finally:
            self._turn.release()
        if found is None:
            raise TimeoutError
        title, text, is_whole = found
        return str(title), str(text), bool(is_whole)

    def end(self) -> None:
        """End the program; the next page starts another."""
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            os.killpg(process.pid, signal.SIGKILL)  # with its child that reads a page
            process.wait()

    def _connection(self) -> Connection:
        if self._running is None:
            ours, theirs = Pipe()
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", extractor.__name__, str(theirs.fileno())],
                    cwd=settings.BASE_DIR,
                    env={name: os.environ[name] for name in KEPT_NAMES if name in os.environ},
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self._running = process, ours
            _answer(ours, STARTING)
        return self._running[1]


def _answer(connection: Connection, seconds: float) -> bytes:
    if not connection.poll(seconds):
        raise TimeoutError
    return connection.recv_bytes()


EXTRACTOR = Extractor()
atexit.register(EXTRACTOR.end)
