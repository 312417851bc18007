"""`manage.py createsuperuser`: Django's, and the ledger names who has every right from now on."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from core.actions import Action
from core.database import MAY_REST, database_now
from core.people import operator
from ledger.services import record
from orgchart.keys import revoke_keys_of_one_person
from orgchart.people.members import lock_users
from orgchart.people.rules import EVERY


class Command(createsuperuser.Command):
    """Make the user and its event at once, and end keys as another new member of a Board does."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask and make. Raises CommandError where another takes the name meanwhile."""
        try:
            self._make(args, options)
        except IntegrityError as problem:
            raise CommandError("Error: That username is already taken.") from problem

    def _make(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Ask and make. While it asks, its transaction has written nothing: sealing goes on."""
        superusers = User.objects.filter(is_superuser=True)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(MAY_REST)
            before = set(superusers.values_list("pk", flat=True))
            super().handle(*args, **options)
            made = superusers.exclude(pk__in=before)
            if not made:  # Django says that it skipped it, as a success
                raise CommandError("No superuser was made: run it at a terminal, or see --help")
            self._tell(made)

    def _tell(self, made: QuerySet[User]) -> None:
        now = database_now()
        for user in made:
            lock_users()
            record(
                Action.MEMBER_ADDED,
                by=operator(),
                at=now,
                subject=f"human:{user.get_username()}",
                reason="every organisation, as a superuser",
            )
            revoke_keys_of_one_person({EVERY}, caller=operator(), now=now)
