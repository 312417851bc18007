"""The deadlines of contracts as rows."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from contracts.vocabulary import DeadlineStage
from core.closed_sets import choices_of, one_of
from orgchart.models import Organisation


class Deadline(models.Model):
    """A notification of a contract's deadline, sent once: a reminder, or that it is overdue."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    contract = models.ForeignKey("contracts.Contract", models.CASCADE, related_name="deadlines")
    stage = models.CharField(max_length=8, choices=choices_of(DeadlineStage))
    due_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["due_at"]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(done_at=None), name="deadline_due"),
            models.Index(fields=["-due_at", "-id"], name="deadline_order"),
            models.Index(fields=["organisation", "-id"], name="deadline_organisation"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["contract", "stage"], name="deadline_stage_once"),
            one_of("stage", DeadlineStage, name="deadline_stage_known"),
        ]

    def __str__(self) -> str:
        return gettext("%(part)s of %(whole)s") % {
            "part": self.get_stage_display(),
            "whole": self.contract_id,
        }
