"""Escalations and their state machine (Spec: mail 36)."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from core.closed_sets import one_of
from mailroom.vocabulary import ESCALATION_MACHINE, UNSETTLED, EscalationState
from orgchart.models import Agent, Organisation

OPEN_THREADS = ("sender_id", "recipient_id")
"""The order in which a scheduled job reads open threads: that of their own index, however many have
ended. In the order of ids PostgreSQL may read the whole table.
"""


class Escalation(models.Model):
    """One step up the chain, waiting for an answer until `due_at`.

    `first` is the first of its thread: what one sender sent to one superior without an answer; the
    notices about a thread are noted there. `root` is the first of the chain to the Board, in which
    threads are passed on. A late answer does not clear `unanswered_at`. `board_waits_since`: the
    time since when a notice to the Board is missing, as the organisation has no channel to it.
    """

    mail = models.OneToOneField("mailroom.Mail", models.PROTECT, related_name="escalation")
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    sender = models.ForeignKey(Agent, models.PROTECT, related_name="+")
    recipient = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+")
    first = models.ForeignKey("self", models.PROTECT, null=True, related_name="thread")
    root = models.ForeignKey("self", models.PROTECT, null=True, related_name="chain")
    follows = models.ForeignKey("self", models.PROTECT, null=True, related_name="followers")
    state = ESCALATION_MACHINE.field(max_length=16)
    version = models.PositiveIntegerField(default=1)
    due_at = models.DateTimeField()
    unanswered_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = models.CharField(max_length=100, blank=True)
    told_ceo_at = models.DateTimeField(null=True, blank=True)
    told_board_at = models.DateTimeField(null=True, blank=True)
    board_waits_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="escalation_organisation"),
            models.Index(fields=["due_at"], condition=Q(state="open"), name="escalation_due"),
            models.Index(
                fields=["organisation"],
                condition=Q(state__in=UNSETTLED),
                name="escalation_unsettled",
            ),
            models.Index(
                fields=["organisation"],
                condition=Q(board_waits_since__isnull=False),
                name="escalation_board_waits",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["sender", "recipient"],
                condition=Q(first=None, state__in=UNSETTLED),
                name="escalation_one_open_thread",
            ),
            one_of("state", EscalationState, name="escalation_state_known"),
            models.CheckConstraint(
                condition=Q(state="open", unanswered_at=None)
                | Q(state="unanswered", unanswered_at__isnull=False)
                | Q(state__in=["answered", "passed_on"]),
                name="escalation_silence_is_dated",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "unanswered"], answered_at=None, answered_by="")
                | Q(state__in=["answered", "passed_on"], answered_at__isnull=False)
                & ~Q(answered_by=""),
                name="escalation_answer_has_a_hand",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sender} -> {self.recipient or 'board'}"

    @property
    def origin(self) -> Escalation:
        """The escalation in its sender's words: of a notice, the one that it is about."""
        found = self
        while found.follows is not None and found.mail.sender_id is None:
            found = found.follows
        return found

    @property
    def own_mail_id(self) -> str:
        """The mail of its sender: of a notice, that of the escalation that it is about."""
        return self.origin.mail_id

    @ESCALATION_MACHINE.step("answer", state)
    def answer(self, *, by: str, at: datetime) -> None:
        """A reply, a contract or a person has answered it."""
        self.answered_by, self.answered_at = by, at

    @ESCALATION_MACHINE.step("pass_on", state)
    def pass_on(self, *, by: str, at: datetime) -> None:
        """Its recipient has escalated it further up, or its sender has another superior."""
        self.answered_by, self.answered_at = by, at

    @ESCALATION_MACHINE.step("time_out", state)
    def time_out(self, *, at: datetime) -> None:
        """Its time is over without an answer."""
        self.unanswered_at = at

    @property
    def is_notice_missing(self) -> bool:
        """Whether the Board should have got a notice of it, and there was no channel."""
        return self.board_waits_since is not None and self.state in UNSETTLED
