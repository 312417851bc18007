"""Which group may what: one table, written into the database by `migrate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from core.people import Desk

ORGANISATION = ("orgchart", "toolbox")
"""The rooms that HR looks into: who is who and who may what; not what they write to each other."""

HR_SEES = frozenset({"tasks.task", "tasks.dependency"})
"""And the work that is to be done: who has which task, what waits for what; not the discussion."""

HR_EDITS: Mapping[str, tuple[str, ...]] = {
    "organisation": ("change",),
    "role": ("add", "change", "delete"),
    "group": ("add", "change", "delete"),
    "agent": ("add", "change"),
    "alias": ("add", "change", "delete"),
    "mailtyperule": ("add", "change", "delete"),
    "contactrule": ("add", "change", "delete"),
    "tooloverride": ("add", "change", "delete"),
}

ACTS: Mapping[str, tuple[str, tuple[Desk, ...]]] = {
    "orgchart.apikey.issue_apikey": ("Can issue a key to an agent", (Desk.BOARD,)),
    "orgchart.apikey.revoke_apikey": ("Can revoke a key", (Desk.BOARD,)),
    "orgchart.agent.activate_agent": (
        "Can deactivate an agent and activate it again",
        (Desk.BOARD, Desk.HR),
    ),
    "toolbox.session.switch_mode": ("Can open and close a session's coding mode", (Desk.BOARD,)),
    "toolbox.frame.cancel_frame": ("Can cancel what an agent delegated", (Desk.BOARD,)),
    "workspace.skill.approve_skill": ("Can approve a skill's exact file", (Desk.BOARD,)),
    "contracts.contract.issue_contract": ("Can issue a contract to the top agent", (Desk.BOARD,)),
    "contracts.contract.cancel_contract": ("Can cancel a contract", (Desk.BOARD,)),
    "tasks.task.comment_task": ("Can comment on a task", (Desk.BOARD, Desk.OBSERVER)),
    "tasks.task.approve_task": ("Can approve a task's work", (Desk.BOARD,)),
    "tasks.feedback.take_in_feedback": ("Can take in users' feedback", (Desk.BOARD,)),
    "mailroom.escalation.answer_escalation": (
        "Can answer an escalation for the Board",
        (Desk.BOARD,),
    ),
    "mailroom.outgoingnotice.resend_outgoingnotice": (
        "Can send a dead notice again",
        (Desk.BOARD,),
    ),
}
"""What is more than looking or editing: `app.model.codename`, its name, and who may."""

BOARD_KEEPS = ("auth.view_user", "auth.add_user", "auth.change_user", "auth.view_group")
"""The Board says who the other humans are; HR cannot, so that nobody promotes themselves."""


def rights_of(desk: Desk, room: str) -> frozenset[str]:
    """Codenames of a room's permissions that a group has."""
    names = [model.__name__.lower() for model in apps.get_app_config(room).get_models()]
    all_of_it = desk is not Desk.HR or room in ORGANISATION
    found = {f"view_{name}" for name in names if all_of_it or f"{room}.{name}" in HR_SEES}
    if desk is Desk.HR and room == "orgchart":
        found |= {f"{verb}_{model}" for model, verbs in HR_EDITS.items() for verb in verbs}
    for name, (_, desks) in ACTS.items():
        app, _, codename = name.split(".")
        if app == room and desk in desks:
            found.add(codename)
    return frozenset(found)


def grant(app_config: AppConfig, using: str = "default", **_signal: Any) -> None:
    """Bring the groups' rights in one room into line with the table; connected to `post_migrate`.

    After every `migrate`, rather than in one migration of its own: rooms that come later bring
    tables that the groups must see too, and a right taken out of the table is taken away.
    """
    if not _has_groups(_signal.get("apps")):
        return
    if app_config.label in settings.ROOMS:
        _make_acts(app_config.label, using)
        for desk in Desk:
            group, _ = Group.objects.using(using).get_or_create(name=desk.value)
            _set(group, app_config.label, rights_of(desk, app_config.label), using)
    elif app_config.label == "auth":
        codenames = frozenset(name.partition(".")[2] for name in BOARD_KEEPS)
        for desk in Desk:
            group, _ = Group.objects.using(using).get_or_create(name=desk.value)
            _set(group, "auth", codenames if desk is Desk.BOARD else frozenset(), using)


def _has_groups(migrated: Any) -> bool:
    """Whether the tables of people are there yet: one room may be migrated alone."""
    try:
        return migrated is None or bool(migrated.get_model("auth", "Group"))
    except LookupError:
        return False


def _make_acts(room: str, using: str) -> None:
    for name, (title, _) in ACTS.items():
        app, model, codename = name.split(".")
        if app == room and apps.all_models[app].get(model):
            kind = ContentType.objects.db_manager(using).get_for_model(apps.get_model(app, model))
            Permission.objects.using(using).update_or_create(
                content_type=kind, codename=codename, defaults={"name": title}
            )


def _set(group: Group, room: str, codenames: Iterable[str], using: str) -> None:
    wanted = Permission.objects.using(using).filter(
        content_type__app_label=room, codename__in=codenames
    )
    stale = group.permissions.filter(content_type__app_label=room).exclude(codename__in=codenames)
    group.permissions.remove(*stale)
    group.permissions.add(*wanted)
