"""An organisation's settings: what there is, what each means, how a value is validated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from core.language import gettext_noop as _
from orgchart import setting_parsers
from orgchart.policy.vocabulary import ToolMode
from orgchart.setting_parsers import BadSetting


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its default, its label and meaning for people, its validator.

    `choices`: the words for people of the only values there are. `bound`: the installation's
    setting that a quota stays within, and that holds where the quota is 0.
    """

    default: Any
    label: str
    meaning: str
    check: Callable[[Any], Any]
    choices: Mapping[str, str] = field(default_factory=dict)
    bound: str = ""

    @property
    def is_duration(self) -> bool:
        """Whether the value is a length of time, in seconds."""
        return self.check in (setting_parsers.seconds, setting_parsers.some_seconds)


def _choice(default: str, label: str, meaning: str, *, choices: Mapping[str, str]) -> Setting:
    """A setting that has one of a few values."""
    return Setting(default, label, meaning, setting_parsers.one_of(*choices), choices)


def _quota(bound: str, label: str, meaning: str) -> Setting:
    """A quota: 0, or at most the installation's limit."""
    return Setting(0, label, meaning, setting_parsers.within(bound), bound=bound)


SETTINGS: Mapping[str, Setting] = {
    "enabled_modes": Setting(
        ["chat_safe"],
        _("Modes that sessions may have"),
        _("tool modes that a session may have at all, comma-separated"),
        setting_parsers.modes,
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
        setting_parsers.seconds,
    ),
    "ceo_timeout": Setting(
        14_400,
        _("Time for the top agent to answer"),
        _("seconds the top agent has to answer before the Board is told"),
        setting_parsers.seconds,
    ),
    "task_lease": Setting(
        0,
        _("How long a claim on a task lasts"),
        _("seconds a claim on a task lasts without an update; 0 = no lease"),
        setting_parsers.seconds,
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
        setting_parsers.names,
    ),
    "frame_timeout": Setting(
        3600,
        _("Time for delegated work"),
        _("seconds a delegation may take before it returns a failure to its opener"),
        setting_parsers.some_seconds,
    ),
    "max_rounds": Setting(
        3,
        _("Rounds before a case pauses"),
        _("rounds of a constitutional case before it pauses for people"),
        setting_parsers.rounds,
    ),
    "board_webhook": Setting(
        "",
        _("Webhook of the Board"),
        _("address that notices to the Board are posted to"),
        setting_parsers.url,
    ),
    "board_email": Setting(
        "",
        _("E-mail address of the Board"),
        _("mail address that notices to the Board are sent to"),
        setting_parsers.mail_address,
    ),
    "repository": Setting(
        "",
        _("Git repository to import"),
        _(
            "where the organisation's git repository is imported from: an https or ssh address, "
            "or an absolute path; empty = NEXUS creates one"
        ),
        setting_parsers.repository,
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
        setting_parsers.flag,
    ),
    "bytes_per_minute": _quota(
        "NEXUS_BYTES_PER_MINUTE",
        _("Bytes an agent writes in a minute"),
        _(
            "the most bytes that an agent's calls over 8 KB write in a minute; "
            "0 = the installation's limit"
        ),
    ),
    "bytes_per_day": _quota(
        "NEXUS_BYTES_PER_DAY",
        _("Bytes an agent writes in a day"),
        _(
            "the most bytes that an agent's calls over 8 KB write in a day; "
            "0 = the installation's limit"
        ),
    ),
    "organisation_bytes_per_day": _quota(
        "NEXUS_ORGANISATION_BYTES_PER_DAY",
        _("Bytes all agents write in a day"),
        _(
            "the most bytes that calls over 8 KB of all agents write in a day; "
            "0 = the installation's limit"
        ),
    ),
    "organisation_bytes": _quota(
        "NEXUS_ORGANISATION_BYTES",
        _("Bytes all agents store in all"),
        _("the most bytes that the calls of all agents store; 0 = the installation's limit"),
    ),
    "organisation_rows": _quota(
        "NEXUS_ORGANISATION_ROWS",
        _("Calls of all agents that are stored"),
        _(
            "the most rows that all agents store, one for each call that writes; "
            "0 = the installation's limit"
        ),
    ),
    "organisation_agents": _quota(
        "NEXUS_ORGANISATION_AGENTS",
        _("Agents of the organisation"),
        _("the most agents there are, deactivated ones too; 0 = the installation's limit"),
    ),
    "sessions_per_day": _quota(
        "NEXUS_SESSIONS_PER_DAY",
        _("Sessions an agent opens in a day"),
        _("the most sessions that an agent opens in a day; 0 = the installation's limit"),
    ),
    "web_calls_per_day": _quota(
        "NEXUS_WEB_CALLS_PER_DAY",
        _("Pages and searches of an agent in a day"),
        _("the most searches and pages that an agent reads in a day; 0 = the installation's limit"),
    ),
    "workspace_bytes": _quota(
        "WORKSPACE_BYTES",
        _("Bytes in an agent's home"),
        _("the most bytes that the files of an agent take; 0 = the installation's limit"),
    ),
    "workspace_files": _quota(
        "WORKSPACE_FILES",
        _("Files in an agent's home"),
        _("the most files that an agent has; 0 = the installation's limit"),
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


def public(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as those read them who may not change them (Spec: people 61)."""
    return {
        name: setting_parsers.without_path(value) if name == "board_webhook" else value
        for name, value in values.items()
    }


def quota_of(values: Mapping[str, Any], name: str) -> int:
    """What a quota allows under these settings: its own value, or the installation's limit.

    Spec: settings 9.
    """
    return int(values[name] or getattr(settings, SETTINGS[name].bound))


def enabled_modes(stored: Mapping[str, Any]) -> frozenset[ToolMode]:
    """The modes an organisation enables; chat_safe alone where the setting is unreadable."""
    return frozenset(ToolMode(mode) for mode in merged(stored)["enabled_modes"])
