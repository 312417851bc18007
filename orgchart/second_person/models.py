"""Changes of the policy that a person proposed and a second person has not confirmed yet."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext

from orgchart.second_person.vocabulary import PENDING_MACHINE, PendingState


class PendingChanges(models.QuerySet["PendingChange"]):
    """The proposed changes, as services and pages ask for them."""

    def seen_by(self, organisations: Collection[int] | None) -> Self:
        """Those that a member of these organisations sees; None is a member of every one."""
        if organisations is None:
            return self
        ids = sorted(organisations)
        of_users = models.Q(organisation=None, boards__contained_by=ids)
        return self.filter(models.Q(organisation_id__in=ids) | of_users)

    def waiting(self, *, proposed_by: str, **same: Any) -> PendingChange | None:
        """The same change that this person proposed before, as by a double click; None without one.

        Needs the lock under which changes are proposed (Spec: people 8).
        """
        mine = self.filter(state=PendingState.PROPOSED, proposed_by=proposed_by)
        return mine.filter(**same).order_by("id").first()


class PendingChange(models.Model):
    """One proposed change: `edit` is what the same service applies again when it is confirmed.

    `allowed` and `forbidden` are the difference that was shown, on `policy_version`. A change of a
    user has no organisation, but the `boards` that confirm it; 0 is that of the installation.
    `proposer_known_to` are all who could act as the proposer at that moment.
    """

    organisation = models.ForeignKey(
        "orgchart.Organisation", models.CASCADE, related_name="pending_changes", null=True
    )
    boards = ArrayField(models.BigIntegerField(), default=list, blank=True)
    state = PENDING_MACHINE.field(max_length=16)
    version = models.PositiveIntegerField(default=1)
    subject = models.CharField(max_length=200)
    edit = models.JSONField()
    shown = models.JSONField(default=list, blank=True)
    allowed = ArrayField(models.TextField(), default=list, blank=True)
    forbidden = ArrayField(models.TextField(), default=list, blank=True)
    policy_version = models.PositiveBigIntegerField()
    proposed_by = models.CharField(max_length=150)
    proposer_known_to = ArrayField(models.CharField(max_length=150), default=list, blank=True)
    proposed_at = models.DateTimeField()
    reason = models.TextField()
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = models.TextField(blank=True)

    objects = PendingChanges.as_manager()

    class Meta:
        app_label = "orgchart"
        ordering = ["-id"]
        verbose_name = "change to confirm"
        verbose_name_plural = "changes to confirm"
        indexes = [models.Index(fields=["organisation", "state"], name="pending_by_state")]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(state="confirmed")
                | (~models.Q(decided_by="") & ~models.Q(decided_by=models.F("proposed_by"))),
                name="pending_second_person",
            ),
            models.CheckConstraint(
                condition=models.Q(organisation=None, boards__len__gt=0)
                | models.Q(organisation__isnull=False, boards=[]),
                name="pending_of_someone",
            ),
        ]

    def __str__(self) -> str:
        names = {"number": self.pk, "subject": self.subject}
        return gettext("change %(number)s: %(subject)s") % names

    @PENDING_MACHINE.step("confirm", state)
    def confirm(self, *, by: str, at: datetime, reason: str) -> None:
        """A second person confirms it."""
        self._decide(by, at, reason)

    @PENDING_MACHINE.step("reject", state)
    def reject(self, *, by: str, at: datetime, reason: str) -> None:
        """A second person rejects it."""
        self._decide(by, at, reason)

    @PENDING_MACHINE.step("withdraw", state)
    def withdraw(self, *, by: str, at: datetime, reason: str) -> None:
        """The proposer takes it back."""
        self._decide(by, at, reason)

    @PENDING_MACHINE.step("go_stale", state)
    def go_stale(self, *, by: str, at: datetime, reason: str) -> None:
        """It can no longer be made as it was shown."""
        self._decide(by, at, reason)

    def _decide(self, by: str, at: datetime, reason: str) -> None:
        self.decided_by, self.decided_at, self.decision_reason = by, at, reason
