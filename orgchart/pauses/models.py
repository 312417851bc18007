"""Pauses: an agent that people stopped, or every agent of an organisation (Spec: people 39)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Pause(models.Model):
    """From `paused_at` until `ended_at` the agent calls nothing; without `agent`, no agent does.

    `by_board` says whether `paused_by` was a member of the Board then (Spec: people 39).
    """

    organisation = models.ForeignKey(
        "orgchart.Organisation", models.CASCADE, related_name="pauses", db_index=False
    )
    agent = models.ForeignKey(
        "orgchart.Agent", models.CASCADE, null=True, blank=True, related_name="pauses"
    )
    reason = models.TextField()
    paused_by = models.CharField(max_length=160)
    by_board = models.BooleanField(default=True)
    paused_at = models.DateTimeField()
    ended_by = models.CharField(max_length=160, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.TextField(blank=True)

    class Meta:
        app_label = "orgchart"
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "agent"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="pause_open_once",
            ),
            models.CheckConstraint(condition=Q(reason__regex=r"\S"), name="pause_reason_given"),
            models.CheckConstraint(
                condition=Q(ended_at=None) | (Q(end_reason__regex=r"\S") & ~Q(ended_by="")),
                name="pause_ended_by_someone",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent or self.organisation}: {self.reason}"
