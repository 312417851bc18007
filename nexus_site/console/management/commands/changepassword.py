"""`manage.py changepassword`: Django's, but it saves the password alone."""

from __future__ import annotations

from getpass import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from core.people import operator, system_user
from orgchart.people.passwords import give_password, lock_user

TRIES = 3


class Command(changepassword.Command):
    """Ask for a user's new password twice; the user chooses another one at the next sign-in.

    Django would save the whole user, and undo what changed while the operator was typing.
    """

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask, then save."""
        name = options["username"] or system_user()
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no user {name}; see: manage.py people list")
        self.stdout.write(f"Changing password for user {name}")
        password = self._ask(user)
        with transaction.atomic():
            lock_user(user)
            user.set_password(password)
            user.password_chosen_by = operator().actor  # type: ignore[attr-defined]  # for the record
            user.save(update_fields=["password"])
            give_password(user.pk)
        self.stdout.write(f"Password changed. {name} chooses another one at the next sign-in.")

    def _ask(self, user: User) -> str:
        """A password that is typed twice and valid. Raises CommandError after TRIES."""
        for _ in range(TRIES):
            password = getpass("Password: ")
            if password != getpass("Password (again): "):
                self.stderr.write("The passwords differ. Try again.")
                continue
            try:
                validate_password(password, user)
            except ValidationError as problem:
                self.stderr.write("\n".join(problem.messages))
            else:
                return password
        raise CommandError(f"no valid password after {TRIES} tries; nothing changed")
