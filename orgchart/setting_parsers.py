"""What the settings of an organisation can hold: each check returns a value, or raises BadSetting.

Values come from files, from words of a command line and from JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from core.addresses import repository_problem
from core.ids import row_id
from orgchart.policy.vocabulary import ToolMode


class BadSetting(ValueError):
    """A setting that does not exist or a value it cannot hold; `problem` leaves its name out."""

    def __init__(self, problem: str, name: str | None = None) -> None:
        super().__init__(problem if name is None else f"{name}: {problem}")
        self.problem = problem


def seconds(value: Any) -> int:
    """A length of time, or none."""
    return _whole(value, low=0, high=366 * 86_400)


def some_seconds(value: Any) -> int:
    """A length of time of at least a second."""
    return _whole(value, low=1, high=366 * 86_400)


def rounds(value: Any) -> int:
    """A number of rounds."""
    return _whole(value, low=1, high=100)


def _whole(value: Any, *, low: int, high: int) -> int:
    if isinstance(value, str):
        value = row_id(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadSetting(f"must be a whole number from {low} to {high}")
    return value


def within(bound: str) -> Callable[[Any], int]:
    """0, or as much as a setting of the installation allows."""

    def check(value: Any) -> int:
        return _whole(value, low=0, high=getattr(settings, bound))

    return check


def flag(value: Any) -> bool:
    """Yes or no, also as words."""
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    if not isinstance(value, bool):
        raise BadSetting("must be true or false")
    return value


def one_of(*choices: str) -> Callable[[Any], str]:
    """One of these words."""

    def check(value: Any) -> str:
        if value not in choices:
            raise BadSetting(f"must be one of {', '.join(choices)}")
        return str(value)

    return check


def modes(value: Any) -> list[str]:
    """Tool modes in their order; chat_safe is always one (Spec: settings 4)."""
    if isinstance(value, str):
        value = [part for part in value.replace(" ", "").split(",") if part]
    known = [mode.value for mode in ToolMode]
    if not isinstance(value, list) or any(mode not in known for mode in value):
        raise BadSetting(f"must be a list of {', '.join(known)}")
    if ToolMode.CHAT_SAFE not in value:
        raise BadSetting("must hold chat_safe, the mode that everything falls back to")
    return [mode for mode in known if mode in value]


def names(value: Any) -> list[str]:
    """Names, sorted, each once."""
    if isinstance(value, str):
        value = [part for part in value.replace(" ", "").split(",") if part]
    if not isinstance(value, list) or not all(
        isinstance(name, str) and name.isidentifier() and len(name) <= 64 for name in value
    ):
        raise BadSetting("must be a list of names, comma-separated")
    return sorted(set(value))


def _line(value: Any) -> str:
    """One printable line: it ends up in headers and in JSON columns."""
    if not isinstance(value, str) or len(value) > 500 or not value.isprintable():
        raise BadSetting("must be one line of 500 printable characters at most")
    return value


def url(value: Any) -> str:
    """An address of the web, or none. Who sees the organisation reads its host."""
    text = _line(value)
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in text
        whole = whole and "@" not in parts.netloc
    except ValueError:
        whole = False
    if text and not whole:
        raise BadSetting("must be an http or https address without a password, or empty")
    return text


def without_path(address: str) -> str:
    """An address as people read it who may not change it: its path may be a secret."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    return address if address.removeprefix(origin) in ("", "/") else f"{origin}/…"


def repository(value: Any) -> str:
    """Where a git repository lies, or none."""
    text = _line(value)
    problem = repository_problem(text) if text else ""
    if problem:
        raise BadSetting(problem)
    return text


def mail_address(value: Any) -> str:
    """A mail address, or none."""
    text = _line(value)
    try:
        if text:
            validate_email(text)
    except ValidationError as problem:
        raise BadSetting("must be a mail address, or empty") from problem
    if "=?" in text:  # e-mail would go to what it encodes, which is not what people read
        raise BadSetting("must be a mail address, or empty")
    return text
