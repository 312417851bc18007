"""Tables of people: memberships, and passwords that somebody else chose."""

from __future__ import annotations

from django.conf import settings
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
    """A password that somebody else chose: its user changes it before anything else."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="given_password"
    )
    given_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"password of {self.person}, given by somebody else"
