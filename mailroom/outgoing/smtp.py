"""E-mail by SMTP, from a server that has limited time and words, however it answers."""

from __future__ import annotations

import smtplib
import socket
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any

from django.core.mail.backends import smtp

from core.outgoing import NotResolved, addresses_of, close_after

LONGEST = 15.0
"""Upper limit of one e-mail, in seconds: the client's own timeout restarts with every byte."""
LEAST = 0.1
"""Seconds that an address gets at least; after the time is over no other is tried."""
MOST_LINES = 100
"""Lines of one answer that are read; smtplib keeps all of them."""


class TooManyLines(OSError):
    """The server's answer does not end."""


class NoSession(smtplib.SMTPException):
    """The server gave no session to any e-mail: its name, its greeting or its sign-in failed.

    What one e-mail meets afterwards may be its receiver's doing.
    """


class ServerLines:
    """The answers of a server, as smtplib reads them: line by line."""

    def __init__(self, file: Any) -> None:
        self._file, self.left = file, MOST_LINES

    def readline(self, size: int) -> bytes:
        """The next line. Raises TooManyLines."""
        self.left -= 1
        if self.left < 0:
            raise TooManyLines("its answer has too many lines")
        line: bytes = self._file.readline(size)
        return line

    def close(self) -> None:
        """Close what is read."""
        self._file.close()


class Bounded(smtplib.SMTP):
    """A session that is cut off when its time is over, also where it began late."""

    def __init__(self, *words: Any, **named: Any) -> None:
        self._time, self._ends = ExitStack(), monotonic() + LONGEST
        self._connection = self._time.enter_context(close_after(LONGEST))
        try:
            super().__init__(*words, **named)
        except BaseException:
            self._time.close()
            raise

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """The first address that answers; each gets its share of the time that is left.

        Raises NotResolved, OSError.
        """
        addresses = addresses_of(host, port, min(timeout, LONGEST))
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = max(LEAST, (self._ends - monotonic()) / left)
            try:
                found: socket.socket = super()._get_socket(  # type: ignore[misc]  # not in its stubs
                    str(address), port, min(timeout, share)
                )
            except OSError:
                if left == 1 or monotonic() >= self._ends:
                    raise
            else:
                found.settimeout(timeout)
                return found
        raise OSError(f"{host} has no address")

    def getreply(self) -> tuple[int, bytes]:
        """One answer of the server, of MOST_LINES at most."""
        if self.file is None and self.sock is not None:  # a new socket: plain, or by TLS from now
            self._connection.note(self.sock)
            self.file = ServerLines(self.sock.makefile("rb"))
        if isinstance(self.file, ServerLines):
            self.file.left = MOST_LINES
        return super().getreply()

    def close(self) -> None:
        """End the session, and its time."""
        self._time.close()
        super().close()


class BoundedTLS(Bounded, smtplib.SMTP_SSL):
    """The same by TLS from the first byte on."""


class EmailBackend(smtp.EmailBackend):
    """Django's own, whose sessions are bounded."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """The kind of session."""
        return BoundedTLS if self.use_ssl else Bounded

    def open(self) -> bool | None:
        """Begin a session, as Django does. Raises NoSession."""
        try:
            return super().open()
        except (OSError, NotResolved) as problem:
            raise NoSession(f"{type(problem).__name__}: {problem}") from problem

    def close(self) -> None:
        """End the session; what was taken before stays taken, however the server answers that."""
        with suppress(smtplib.SMTPException):
            super().close()
