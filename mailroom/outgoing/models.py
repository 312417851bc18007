"""Notices to people outside, kept until they are sent or given up."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from core.closed_sets import one_of
from mailroom.vocabulary import NOTICE_MACHINE, NoticeState
from orgchart.models import Organisation
from orgchart.setting_parsers import without_path


class OutgoingNotice(models.Model):
    """A notice to people outside, inserted with its cause; one event id for all its attempts.

    `payload` is in English; `wording` is what an e-mail says in the installation's language.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    event_id = models.UUIDField()
    channel = models.CharField(max_length=8, choices=[("webhook", "webhook"), ("email", "email")])
    target = models.CharField(max_length=500)
    payload = models.JSONField()
    wording = models.JSONField(default=dict, db_default={})
    state = NOTICE_MACHINE.field(max_length=8)
    version = models.PositiveIntegerField(default=1, db_default=1)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    last_problem = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = "notice"
        indexes = [
            models.Index(fields=["organisation", "-id"], name="notice_organisation"),
            models.Index(
                fields=["organisation", "channel", "due_at"],
                condition=Q(state="pending"),
                name="notice_due_of_channel",
            ),
            models.Index(fields=["organisation"], condition=Q(state="dead"), name="notice_dead"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["event_id", "channel"], name="notice_once"),
            one_of("state", NoticeState, name="notice_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} {self.event_id}"

    @property
    def place(self) -> str:
        """Where it went last, or goes first, as everybody may read it (Spec: people 61)."""
        return self.as_place(self.target)

    def as_place(self, target: str) -> str:
        """An address of its channel, as everybody may read it."""
        return without_path(target) if self.channel == "webhook" else target

    @NOTICE_MACHINE.step("mark_sent", state)
    def mark_sent(self, *, at: datetime) -> None:
        """Its receiver has accepted it."""
        self.due_at = self.settled_at = at

    @NOTICE_MACHINE.step("give_up", state)
    def give_up(self, *, at: datetime) -> None:
        """Its last attempt has failed."""
        self.due_at = self.settled_at = at

    @NOTICE_MACHINE.step("resend", state)
    def resend(self, *, at: datetime) -> None:
        """A person starts its attempts again."""
        self.attempts, self.due_at, self.settled_at = 0, at, None
