"""What the hands know: skills, as their files are and as people approved them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class Skill(models.Model):
    """A SKILL.md of this installation as it was last seen, and the exact file that was approved."""

    name = models.CharField(max_length=64, unique=True)
    path = models.CharField(max_length=1024)
    description = models.CharField(max_length=1024, blank=True)
    text = models.TextField(blank=True)
    digest = models.CharField(max_length=64, blank=True)
    allowed_tools = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    commands = ArrayField(models.TextField(), default=list, blank=True)
    people_only = models.BooleanField(default=False)
    problem = models.CharField(max_length=500, blank=True)
    installed = models.BooleanField(default=True)
    seen_at = models.DateTimeField()
    approved_digest = models.CharField(max_length=64, blank=True)
    approved_by = models.CharField(max_length=100, blank=True)
    approved_at = models.DateTimeField(null=True, blank=True)
    approval_reason = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(approved_digest="", approved_by="", approved_at=None)
                | ~Q(approved_digest="") & ~Q(approved_by="") & Q(approved_at__isnull=False),
                name="skill_approved_by_someone",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def approved(self) -> bool:
        """Whether the file as it is now is the one that was approved."""
        return bool(self.digest) and self.digest == self.approved_digest
