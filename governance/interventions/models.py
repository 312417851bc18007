"""Every intervention of a person, and every attempt at a confirmation code; both only grow."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from core.closed_sets import one_of
from governance.cases.models import Case
from governance.interventions.vocabulary import HumanOffice
from orgchart.models import Organisation

NOT_BLANK = ("operator", "trigger_condition", "action_taken", "reason")


class Intervention(models.Model):
    """What a person did to a running system, and why (Spec: constitution 21). Insert-only.

    The one table of a company: `case` is set where it was a case, `subject` names what it was, as
    the ledger does. Without an organisation it was something of the whole installation, a skill.
    """

    organisation = models.ForeignKey(
        Organisation, models.CASCADE, null=True, related_name="+", db_index=False
    )
    case = models.ForeignKey(
        Case, models.PROTECT, null=True, blank=True, related_name="interventions", db_index=False
    )
    subject = models.CharField(max_length=160)
    timestamp = models.DateTimeField()
    operator = models.CharField(max_length=150)
    operator_role = models.CharField(
        max_length=16, choices=[(office.value, office.value) for office in HumanOffice]
    )
    trigger_condition = models.CharField(max_length=200)
    action_taken = models.CharField(max_length=40)
    reason = models.TextField()
    details = models.JSONField(default=dict, blank=True)
    confirmed = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="intervention_newest"),
            models.Index(fields=["organisation", "subject", "id"], name="intervention_subject"),
            models.Index(
                fields=["organisation", "case", "id"],
                condition=Q(case__isnull=False),
                name="intervention_case",
            ),
        ]
        constraints = [
            one_of("operator_role", HumanOffice, name="intervention_role_known"),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{name}__regex": r"\S"}), name=f"intervention_{name}_given"
                )
                for name in NOT_BLANK
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operator}: {self.action_taken} {self.subject}"


class CodeAttempt(models.Model):
    """One confirmation code that a person entered, for which action. Insert-only."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    subject = models.CharField(max_length=160)
    action = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    accepted = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["user", "-id"], name="code_attempt_newest")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.action} {self.subject}"
