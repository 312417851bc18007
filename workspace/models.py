"""What the hands know: skills and approvals, uses of the web, git, and runs in the sandbox."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orgchart.models import Agent, Organisation
from workspace.builds.models import Deployment, ImageBuild
from workspace.git.models import Branch, BranchMove, Draft, Repository

__all__ = [
    "Branch",
    "BranchMove",
    "Deployment",
    "Draft",
    "ImageBuild",
    "Repository",
    "Run",
    "Skill",
    "UserNumber",
    "WebUse",
]

HEX = r"^[0-9a-f]{64}$"


class Skill(models.Model):
    """A SKILL.md of this installation as it was last seen, and the exact file that was approved.

    `was_approved`: it was once, so every file of it needs approval, also after a withdrawal.
    `version` grows with each approval and each withdrawal.
    """

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
    was_approved = models.BooleanField(default=False, db_default=False)
    version = models.PositiveIntegerField(default=1, db_default=1)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(approved_digest="") | Q(was_approved=True),
                name="skill_approved_was_approved",
            ),
            models.CheckConstraint(
                condition=Q(approved_digest="", approved_by="", approved_at=None)
                | ~Q(approved_digest="") & ~Q(approved_by="") & Q(approved_at__isnull=False),
                name="skill_approved_by_someone",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def approved(self) -> bool:
        """Whether the file as it is now is the one that was approved."""
        return bool(self.digest) and self.digest == self.approved_digest


class WebUse(models.Model):
    """Searches and pages of an agent on one day (UTC)."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_constraint=False)
    day = models.DateField()
    calls = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "day"], name="web_use_day_once")]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.day}: {self.calls}"


class Run(models.Model):
    """Work of an agent that takes long, with its log; one that waits has not started.

    What is past `ends_by` without an end was interrupted, and counts no more.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+")
    tool = models.CharField(max_length=64)
    paths = ArrayField(models.CharField(max_length=1024))
    commit = models.CharField(max_length=64, blank=True)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ends_by = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    exit_status = models.IntegerField(null=True)
    timed_out = models.BooleanField(default=False)
    stopped_for = models.CharField(max_length=200, blank=True)
    output = models.TextField(blank=True)
    output_sha256 = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="run_organisation"),
            models.Index(
                fields=["organisation"], condition=Q(ended_at=None), name="run_without_end"
            ),
            models.Index(fields=["agent", "-id"], name="run_of_agent"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at=None, output_sha256="") | Q(output_sha256__regex=HEX),
                name="run_digest_form",
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.id}"


class UserNumber(models.Model):
    """The number of an agent's operating-system user; never another agent's.

    The database counts it at the end of the change that inserts the agent. It is not the id of the
    agent's row: a hire that is refused uses up an id, and the numbers of an installation have an
    end.
    """

    agent = models.OneToOneField(Agent, models.CASCADE, primary_key=True, related_name="+")
    number = models.PositiveIntegerField(unique=True)

    def __str__(self) -> str:
        return str(self.number)
