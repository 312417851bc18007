"""The rights of each group, written into the database by `migrate` from the table of deeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from core.permissions import Deed, PeopleGroup

ORGANISATION = ("orgchart", "toolbox")
"""The rooms that HR sees: organisation and permissions, not what agents write to each other."""

HR_SEES = frozenset({"tasks.task", "tasks.dependency"})
"""And the open work: tasks, owners and dependencies, not the discussion."""

HR_DOES_NOT_SEE = frozenset({"toolbox.frame", "toolbox.idempotencyrecord"})
"""Of its rooms the tables with what agents write to each other: instructions, results, answers."""

DJANGO_VERBS = frozenset({"view", "add", "change", "delete"})
"""Permissions that Django creates for every model by itself."""


def rights_of(group: PeopleGroup, room: str) -> frozenset[str]:
    """Codenames of a room's permissions that a group has: what it sees, and its deeds."""
    allowed = [deed.value for deed in Deed if deed.value.app == room and group in deed.value.groups]
    deeds = frozenset(codename for rule in allowed for codename in rule.codenames)
    return deeds | _views(group, room) if room in settings.ROOMS else deeds


def _views(group: PeopleGroup, room: str) -> frozenset[str]:
    names = [model.__name__.lower() for model in apps.get_app_config(room).get_models()]
    if group is PeopleGroup.HR:
        seen = HR_SEES | {f"{room}.{n}" for n in names if room in ORGANISATION} - HR_DOES_NOT_SEE
        names = [n for n in names if f"{room}.{n}" in seen]
    return frozenset(f"view_{n}" for n in names)


def are_granted() -> bool:
    """Whether every group has exactly the rights of the table.

    It has others after a `migrate` that was killed before its end, and after a new version that
    changed the table and brought no migration. Spec: people 26.
    """
    names = [name.value for name in PeopleGroup]
    right = ("name", "permissions__content_type__app_label", "permissions__codename")
    stored = set(Group.objects.filter(name__in=names).values_list(*right))
    wanted = {
        (name.value, room, codename)
        for name in PeopleGroup
        for room in (*settings.ROOMS, "auth")
        for codename in rights_of(name, room)
    }
    return stored == wanted


def grant(app_config: AppConfig, using: str = "default", **_signal: Any) -> None:
    """Bring the groups' rights in one room into line with the table; connected to `post_migrate`.

    After every `migrate`, rather than in one migration of its own: rooms that come later bring
    tables that the groups must see too, and a right taken out of the table is taken away.
    """
    if not _has_groups(_signal.get("apps")):
        return
    room = app_config.label
    if room not in (*settings.ROOMS, "auth"):
        return
    _add_permissions(room, using)
    for name in PeopleGroup:
        group, _ = Group.objects.using(using).get_or_create(name=name.value)
        _set(group, room, rights_of(name, room), using)


def _has_groups(migrated: Any) -> bool:
    """Whether the tables of people are there yet: one room may be migrated alone."""
    try:
        return migrated is None or bool(migrated.get_model("auth", "Group"))
    except LookupError:
        return False


def _add_permissions(room: str, using: str) -> None:
    """Create the permissions of deeds that Django does not create itself."""
    for rule in (deed.value for deed in Deed if deed.value.app == room):
        model = apps.all_models[room].get(rule.model.partition(".")[2])
        if model is None:
            continue
        for codename in (c for c in rule.codenames if c.partition("_")[0] not in DJANGO_VERBS):
            kind = ContentType.objects.db_manager(using).get_for_model(model)
            Permission.objects.using(using).update_or_create(
                content_type=kind, codename=codename, defaults={"name": rule.title}
            )


def _set(group: Group, room: str, codenames: Iterable[str], using: str) -> None:
    wanted = Permission.objects.using(using).filter(
        content_type__app_label=room, codename__in=codenames
    )
    stale = group.permissions.filter(content_type__app_label=room).exclude(codename__in=codenames)
    group.permissions.remove(*stale)
    group.permissions.add(*wanted)
