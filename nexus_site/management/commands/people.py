"""`manage.py people`: memberships and lost second factors, for who has access to the server."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.actions import Action
from core.database import database_now
from core.people import operator
from ledger.services import record
from orgchart.keys import revoke_keys_of_one_person
from orgchart.models import Organisation
from orgchart.people.authenticators import remove_authenticators
from orgchart.people.members import (
    lock_users,
    organisations_of_user,
    set_memberships,
    standing_of,
)
from orgchart.people.rules import EVERY


class Command(BaseCommand):
    """List people, say what they are members of, remove a lost second factor."""

    help = "people: list | member USER ORG… | member USER --every | forget-device USER"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One word for what to do, then the user and the rest."""
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="every user with their groups and organisations")
        member = commands.add_parser("member", help="set the organisations of a user, all at once")
        member.add_argument("user")
        member.add_argument("organisations", nargs="*", metavar="ORG")
        member.add_argument("--every", action="store_true", help="also those that come later")
        forget = commands.add_parser(
            "forget-device", help="remove a lost second factor, end the sessions"
        )
        forget.add_argument("user")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it and say what there is now."""
        match options["command"]:
            case "list":
                for user in User.objects.order_by("username"):
                    self._say(user)
            case "member":
                user = _user(options["user"])
                self._join(user, {EVERY} if options["every"] else _ids(options["organisations"]))
                self._say(user)
            case _:
                self._forget(_user(options["user"]))

    def _join(self, user: User, organisations: set[int | None]) -> None:
        now = database_now()
        with transaction.atomic():
            lock_users()
            before = standing_of(user).organisations
            set_memberships(user=user, organisations=organisations, caller=operator(), now=now)
            revoke_keys_of_one_person(before | organisations, caller=operator(), now=now)

    def _forget(self, user: User) -> None:
        with transaction.atomic():
            removed = remove_authenticators(user)
            record(
                Action.CODE_REMOVED,
                by=operator(),
                at=database_now(),
                subject=f"user:{user.get_username()}",
                reason="second factor removed at the command line",
            )
        self.stdout.write(f"{user}: {removed} second factors removed")

    def _say(self, user: User) -> None:
        ids = organisations_of_user(user.pk)
        rows = Organisation.objects.filter(id__in=ids or ()).order_by("slug")
        names = list(rows.values_list("slug", flat=True)) if ids is not None else ["every one"]
        groups = user.groups.order_by("name").values_list("name", flat=True)
        self.stdout.write(
            f"{user}: groups {', '.join(groups) or 'none'}; organisations "
            f"{', '.join(names) or 'none'}{'; superuser' if user.is_superuser else ''}"
        )


def _user(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"there is no user {name}; see: manage.py people list")
    return found


def _ids(slugs: list[str]) -> set[int | None]:
    found = dict(Organisation.objects.filter(slug__in=slugs).values_list("slug", "id"))
    if unknown := set(slugs) - found.keys():
        raise CommandError(f"there is no organisation {', '.join(sorted(unknown))}")
    return set(found.values())
