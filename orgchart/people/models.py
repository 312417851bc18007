"""Tables of people: memberships, passwords that somebody else chose, filters that they keep."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class Membership(models.Model):
    """A person who belongs to an organisation; without one, to every organisation."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    organisation = models.ForeignKey(
        "orgchart.Organisation", models.CASCADE, related_name="members", null=True, blank=True
    )
    added_at = models.DateTimeField(auto_now_add=True)
    added_by = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["person", "organisation"], nulls_distinct=False, name="member_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.person} in {self.organisation or 'every organisation'}"


class GivenPassword(models.Model):
    """A password that somebody else chose: its user changes it before anything else.

    With `code_from` the change needs a code too, which only that person was shown. `known_to` are
    the person who chose it and, behind them, all who could act as this person at that moment. They
    are kept after a change without a code, too: one of them may have made that change.
    """

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="given_password"
    )
    given_at = models.DateTimeField(auto_now_add=True)
    known_to = ArrayField(models.CharField(max_length=150), default=list, blank=True)
    is_changed = models.BooleanField(default=False)
    code_from = models.CharField(max_length=150, blank=True)
    code_digest = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"password of {self.person}, given by somebody else"


class SavedFilter(models.Model):
    """The filters of a list of the admin, kept by a person under a name (Spec: people 47)."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_filters"
    )
    table = models.CharField(max_length=100)
    name = models.CharField(max_length=40)
    query = models.CharField(max_length=1000)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "table", "name"], name="saved_filter_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.person}"
