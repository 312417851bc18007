"""An organisation's settings: what there is, what each means, how a value is validated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from core.addresses import repository_problem
from core.ids import row_id
from core.language import gettext_noop as _
from orgchart.policy.vocabulary import ToolMode


class BadSetting(ValueError):
    """A setting that does not exist or a value it cannot hold; `problem` leaves its name out."""

    def __init__(self, problem: str, name: str | None = None) -> None:
        super().__init__(problem if name is None else f"{name}: {problem}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its default, its label and meaning for people, its validator.

    `choices`: the words for people of the only values there are.
    """

    default: Any
    label: str
    meaning: str
    check: Callable[[Any], Any]
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_duration(self) -> bool:
        """Whether the value is a length of time, in seconds."""
        return self.check in (_seconds, _some_seconds)


def _choice(default: str, label: str, meaning: str, *, choices: Mapping[str, str]) -> Setting:
    """A setting that has one of a few values."""
    return Setting(default, label, meaning, _one_of(*choices), choices)


def _seconds(value: Any) -> int:
    return _whole(value, low=0, high=366 * 86_400)


def _some_seconds(value: Any) -> int:
    return _whole(value, low=1, high=366 * 86_400)


def _rounds(value: Any) -> int:
    return _whole(value, low=1, high=100)


def _whole(value: Any, *, low: int, high: int) -> int:
    if isinstance(value, str):
        value = row_id(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadSetting(f"must be a whole number from {low} to {high}")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    if not isinstance(value, bool):
        raise BadSetting("must be true or false")
    return value


def _one_of(*choices: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices:
            raise BadSetting(f"must be one of {', '.join(choices)}")
        return str(value)

    return check


def _modes(value: Any) -> list[str]:
    if isinstance(value, str):
        value = [part for part in value.replace(" ", "").split(",") if part]
    known = [mode.value for mode in ToolMode]
    if not isinstance(value, list) or any(mode not in known for mode in value):
        raise BadSetting(f"must be a list of {', '.join(known)}")
    if ToolMode.CHAT_SAFE not in value:
        raise BadSetting("must hold chat_safe, the mode that everything falls back to")
    return [mode for mode in known if mode in value]


def _names(value: Any) -> list[str]:
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


def _url(value: Any) -> str:
    text = _line(value)
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in text
    except ValueError:
        whole = False
    if text and not whole:
        raise BadSetting("must be an http or https address, or empty")
    return text


def _repository(value: Any) -> str:
    text = _line(value)
    problem = repository_problem(text) if text else ""
    if problem:
        raise BadSetting(problem)
    return text


def _mail_address(value: Any) -> str:
    text = _line(value)
    try:
        if text:
            validate_email(text)
    except ValidationError as problem:
        raise BadSetting("must be a mail address, or empty") from problem
    return text


SETTINGS: Mapping[str, Setting] = {
    "enabled_modes": Setting(
        ["chat_safe"],
        _("Modes that sessions may have"),
        _("tool modes that a session may have at all, comma-separated"),
        _modes,
    ),
    "enforcement": _choice(
        "enforce",
        _("What happens to a task's change that breaks a rule"),
        _(
            "role match and version of tasks: enforce refuses, warn lets pass and records, "
            "off passes"
        ),
        choices={"enforce": _("enforce"), "warn": _("warn"), "off": _("off")},
    ),
    "escalation_timeout": Setting(
        7200,
        _("Time to answer an escalation"),
        _("seconds a superior has to answer an escalation"),
        _seconds,
    ),
    "ceo_timeout": Setting(
        14_400,
        _("Time for the top agent to answer"),
        _("seconds the top agent has to answer before the Board is told"),
        _seconds,
    ),
    "task_lease": Setting(
        0,
        _("How long a claim on a task lasts"),
        _("seconds a claim on a task lasts without an update; 0 = no lease"),
        _seconds,
    ),
    "task_visibility": _choice(
        "contacts",
        _("Whose tasks an agent sees"),
        _(
            "whose tasks and comments an agent sees: contacts = by the contact rules, "
            "all = everyone's"
        ),
        choices={"contacts": _("contacts"), "all": _("all")},
    ),
    "approval_task_types": Setting(
        [],
        _("Task types that wait for approval"),
        _("task types that a task lead approves before they are completed"),
        _names,
    ),
    "frame_timeout": Setting(
        3600,
        _("Time for delegated work"),
        _("seconds a delegation may take before it returns a failure to its opener"),
        _some_seconds,
    ),
    "max_rounds": Setting(
        3,
        _("Rounds before a case pauses"),
        _("rounds of a constitutional case before it pauses for people"),
        _rounds,
    ),
    "board_webhook": Setting(
        "",
        _("Webhook of the Board"),
        _("address that notices to the Board are posted to"),
        _url,
    ),
    "board_email": Setting(
        "",
        _("E-mail address of the Board"),
        _("mail address that notices to the Board are sent to"),
        _mail_address,
    ),
    "repository": Setting(
        "",
        _("Git repository to import"),
        _(
            "where the organisation's git repository is imported from: an https or ssh address, "
            "or an absolute path; empty = NEXUS creates one"
        ),
        _repository,
    ),
    "repository_push": _choice(
        "manual",
        _("When changes go back to that repository"),
        _(
            "when the main branch is pushed back there: manual = when a person does it, "
            "after_merge = after every merge"
        ),
        choices={"manual": _("when a person does it"), "after_merge": _("after every merge")},
    ),
    "allow_internal_addresses": Setting(
        False,
        _("Notices to internal addresses"),
        _("whether outgoing notices may go to loopback or private addresses"),
        _flag,
    ),
}


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Validate settings by name.

    Raises BadSetting naming the setting and what it can hold.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise BadSetting(f"no such setting; there are {', '.join(sorted(SETTINGS))}", name)
        try:
            found[name] = setting.check(value)
        except BadSetting as problem:
            raise BadSetting(problem.problem, name) from problem
    return found


def merged(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting with its stored value, or its default where none or a bad one is stored."""
    values = {name: setting.default for name, setting in SETTINGS.items()}
    for name, value in stored.items():
        try:
            values |= checked({name: value})
        except BadSetting:
            continue
    return values


def enabled_modes(stored: Mapping[str, Any]) -> frozenset[ToolMode]:
    """The modes an organisation enables; chat_safe alone where the setting is unreadable."""
    return frozenset(ToolMode(mode) for mode in merged(stored)["enabled_modes"])
