"""The lines of an org_change contract."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from contracts.vocabulary import OrgAct, named_change
from core.closed_sets import choices_of, one_of


class OrgChangeLine(models.Model):
    """One change of the organisation that an org_change contract allows, once."""

    contract = models.ForeignKey("contracts.Contract", models.PROTECT, related_name="changes")
    act = models.CharField(max_length=16, choices=choices_of(OrgAct))
    subject = models.CharField(max_length=64)
    role = models.CharField(max_length=64, blank=True, default="")
    reports_to = models.CharField(max_length=64, blank=True, default="")
    co_managers = models.JSONField(default=list, blank=True)
    skills = models.JSONField(default=list, blank=True)
    group = models.CharField(max_length=64, blank=True, default="")
    leads = models.CharField(max_length=64, blank=True, default="")
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            one_of("act", OrgAct, name="org_change_act_known"),
            models.CheckConstraint(condition=~Q(subject=""), name="org_change_has_a_subject"),
        ]

    def __str__(self) -> str:
        act = self.get_act_display()
        more = (self.reports_to, self.co_managers, self.skills, self.group, self.leads)
        return named_change(act, self.subject, self.role, *more, say=gettext)
