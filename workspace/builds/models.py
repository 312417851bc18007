"""Images that were built here, and their deployments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext

from contracts.models import Contract
from core.closed_sets import one_of
from orgchart.models import Agent, Organisation
from workspace.builds.rules import FREE_ENVIRONMENTS
from workspace.builds.vocabulary import DEPLOYMENT, DeploymentState

DIGEST = r"^sha256:[0-9a-f]{64}$"


class ImageBuild(models.Model):
    """An image that an agent built: the digest is the engine's, the service the image's name."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=80)
    service = models.CharField(max_length=100)
    tag = models.CharField(max_length=255)
    path = models.CharField(max_length=1024)
    contract_ref = models.CharField(max_length=32, blank=True)
    built_by = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    built_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "digest", "-id"], name="image_by_digest"),
            models.Index(fields=["organisation", "-id"], name="image_newest"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(digest__regex=DIGEST), name="image_has_a_digest")
        ]

    def __str__(self) -> str:
        return f"{self.tag} {self.digest[:19]}"


def replaced(**by: Any) -> Exists:
    """Whether a later deployment, one with these values, took the place of the outer query's."""
    same = {name: OuterRef(name) for name in ("organisation_id", "environment", "service")}
    return Exists(Deployment.objects.filter(**same, **by, id__gt=OuterRef("id")))


class Deployment(models.Model):
    """One artefact that was started, or tried to, in one environment; only its end is added.

    `due_at` is when the scheduler settles it, if the process that started it has not.
    """

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    environment = models.CharField(max_length=63)
    service = models.CharField(max_length=100)
    artifact = models.CharField(max_length=255)
    approval = models.OneToOneField(
        Contract, models.PROTECT, null=True, blank=True, related_name="deployment"
    )
    deployed_by = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    state = DEPLOYMENT.field(max_length=16)
    version = models.PositiveIntegerField(default=1)
    problem = models.TextField(blank=True)
    started_at = models.DateTimeField()
    due_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["organisation", "service", "environment", "-id"], name="deployment_service"
            ),
            models.Index(fields=["organisation", "service", "-id"], name="deployment_newest"),
            models.Index(fields=["organisation", "-id"], name="deployment_organisation"),
            models.Index(fields=["due_at"], condition=Q(state="started"), name="deployment_due"),
            models.Index(
                fields=["organisation"], condition=Q(state="unknown"), name="deployment_unknown"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "environment", "service"],
                condition=Q(state="started"),
                name="deployment_one_at_a_time",
            ),
            one_of("state", DeploymentState, name="deployment_state_known"),
            models.CheckConstraint(
                condition=Q(environment__in=sorted(FREE_ENVIRONMENTS)) | Q(approval__isnull=False),
                name="deployment_has_an_approval",
            ),
            models.CheckConstraint(
                condition=Q(state="started", settled_at=None)
                | (~Q(state="started") & Q(settled_at__isnull=False)),
                name="deployment_ends_once",
            ),
            models.CheckConstraint(condition=Q(version__gte=1), name="deployment_version_from_1"),
        ]

    def __str__(self) -> str:
        return gettext("%(deployment)s: %(service)s in %(environment)s") % {
            "deployment": self.id,
            "service": self.service,
            "environment": self.environment,
        }

    @property
    def is_replaced(self) -> bool:
        """Whether a later deployment took its place."""
        return Deployment.objects.filter(replaced(), id=self.id).exists()

    @property
    def is_current(self) -> bool:
        """Whether no later deployment took its place in fact: one that failed did not."""
        later = replaced(state__in=set(DeploymentState) - {DeploymentState.FAILED})
        return not Deployment.objects.filter(later, id=self.id).exists()

    @DEPLOYMENT.step("succeed", state)
    def succeed(self, *, at: datetime, problem: str = "") -> None:
        """It runs; `problem` is what could not be put away of its predecessor."""
        self.settled_at, self.problem = at, problem

    @DEPLOYMENT.step("ask_again", state)
    def ask_again(self, *, due_at: datetime) -> None:
        """A person asks the engine again."""
        self.settled_at, self.due_at = None, due_at

    @DEPLOYMENT.step("find_ended", state)
    def find_ended(self, *, at: datetime, problem: str) -> None:
        """Record that a person saw that it does not run."""
        self.settled_at, self.problem = at, problem

    @DEPLOYMENT.step("take_down", state)
    def take_down(self, *, problem: str) -> None:
        """Record that a person removed it; `problem` says who, and why."""
        self.problem = problem

    @DEPLOYMENT.step("fail", state)
    def fail(self, *, at: datetime, problem: str) -> None:
        """It does not run."""
        self.settled_at, self.problem = at, problem

    @DEPLOYMENT.step("lose_track", state)
    def lose_track(self, *, at: datetime, problem: str) -> None:
        """Record that its state is not known."""
        self.settled_at, self.problem = at, problem
