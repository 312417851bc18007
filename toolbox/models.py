"""Sessions and mode grants, idempotency records, rate buckets, runs of jobs, frames."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext

from orgchart.models import Agent, Organisation
from orgchart.policy.vocabulary import ToolMode
from toolbox.frames.vocabulary import FRAME, FrameKind, FrameState


class Session(models.Model):
    """A session of an agent. The standing one is used for calls that name none."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="sessions")
    standing = models.BooleanField(default=False)
    mode = models.CharField(max_length=16, default=ToolMode.CHAT_SAFE)
    opened_at = models.DateTimeField()
    contract_ref = models.CharField(max_length=32, blank=True, default="")
    """The one contract whose mode, folders and branch this session uses."""

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent"], condition=Q(standing=True), name="session_standing_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["contract_ref"], condition=~Q(contract_ref=""), name="session_contract"
            ),
            models.Index(fields=["-opened_at"], name="session_newest"),
            models.Index(fields=["organisation", "-opened_at"], name="session_organisation"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {gettext('standing') if self.standing else self.id}"

    def backing_grants(self) -> models.QuerySet[ModeGrant]:
        """The open grants of people and of the contract it works under, newest first."""
        grants = self.grants.filter(closed_at=None, contract_ref__in=("", self.contract_ref))
        return grants.order_by("-opened_at", "-id")


class ModeGrant(models.Model):
    """A session's permission to be in a mode; a contract or a person opens and closes it."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="grants")
    mode = models.CharField(max_length=16, choices=[(m, m) for m in ToolMode])
    contract_ref = models.CharField(max_length=32, blank=True)
    reason = models.TextField()
    opened_by = models.CharField(max_length=100)
    opened_at = models.DateTimeField()
    closed_by = models.CharField(max_length=100, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        indexes = [
            models.Index(fields=["contract_ref"], name="mode_grant_contract"),
            models.Index(fields=["organisation", "-id"], name="mode_grant_organisation"),
            models.Index(fields=["session"], condition=Q(closed_at=None), name="mode_grant_open"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "mode", "contract_ref"],
                condition=Q(closed_at=None),
                name="mode_grant_once",
            ),
            models.CheckConstraint(
                condition=Q(closed_at=None) | Q(closed_at__gte=F("opened_at")),
                name="mode_grant_closes_later",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(mode)s for %(session)s") % {"mode": self.mode, "session": self.session}


class IdempotencyRecord(models.Model):
    """The answer to a call with an Idempotency-Key (Spec: wire 19)."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(null=True)  # noqa: DJ001  # JSON; jsonb would reorder its names
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "key"], name="idempotency_once")]

    def __str__(self) -> str:
        return self.key


class RateBucket(models.Model):
    """How many calls an agent may make now. Unlogged: a crash empties it, which is harmless.

    `taken`: how many the last call that counted took at once (`toolbox.rates`); 0: it was refused.
    """

    agent = models.OneToOneField(
        Agent, models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    tokens = models.FloatField()
    at = models.DateTimeField()
    taken = models.SmallIntegerField("calls counted last")

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.tokens:.0f}"


class Watch(models.Model):
    """A process waits for what happens to an agent (`toolbox.watches`).

    `listener` is the server's process that hears the notifications for it. Unlogged, so no sequence
    numbers the rows: on a replica that takes over, PostgreSQL cannot read such a sequence.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent_id = models.BigIntegerField()
    listener = models.IntegerField()

    class Meta:
        verbose_name_plural = "watches"
        indexes = [models.Index(fields=["agent_id"], name="toolbox_watch_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id} by {self.listener}"


class Usage(models.Model):
    """Bytes that an agent stored in one minute; kept for a day.

    Under minus the id of an organisation, which no agent has: what all its agents stored in a
    minute that has ended.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_constraint=False)
    organisation_id = models.BigIntegerField()
    minute = models.DateTimeField()
    bytes = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "minute"], name="toolbox_usage_minute_once")
        ]
        indexes = [models.Index(fields=["organisation_id", "minute"], name="toolbox_usage_day")]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.minute}: {self.bytes}"


class Stored(models.Model):
    """What an agent ever wrote: bytes, and calls, of which each counts as a row.

    Under minus the id of an organisation, which no agent has: what its feedback hook brought.
    """

    agent = models.OneToOneField(
        Agent, models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    organisation_id = models.BigIntegerField()
    bytes = models.BigIntegerField()
    rows = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "stored"
        indexes = [models.Index(fields=["organisation_id"], name="toolbox_stored_organisation")]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.bytes} bytes, {self.rows} rows"


class JobRun(models.Model):
    """When a scheduled job last ran, and what it handled."""

    name = models.CharField(max_length=64, primary_key=True)
    last_at = models.DateTimeField()
    last_seconds = models.FloatField(default=0)
    last_rows = models.PositiveBigIntegerField(default=0)
    last_problem = models.CharField(max_length=500, blank=True)
    rows = models.PositiveBigIntegerField(default=0)
    runs = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Frame(models.Model):
    """One frame of a stack of work: opener, assignee, isolated context and allowed tools.

    `allowed_tools` are already those of the whole stack below: null means that no frame of it
    restricts. An agent works in the newest frame that it has taken, with all its sessions.
    `result_read_at` says when the opener read the result.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in FrameKind])
    name = models.CharField(max_length=100, blank=True)
    opener = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    assignee = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children")
    depth = models.PositiveSmallIntegerField()
    instruction = models.TextField()
    context = models.JSONField(null=True)
    allowed_tools = ArrayField(models.CharField(max_length=100), null=True)
    state = FRAME.field(max_length=16, editable=False)
    version = models.PositiveIntegerField(default=1)
    result = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    result_read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["assignee", "id"], condition=Q(state="open"), name="frame_waiting"
            ),
            models.Index(
                fields=["assignee", "-id"], condition=Q(state="taken"), name="frame_taken"
            ),
            models.Index(
                fields=["opener", "id"],
                condition=Q(
                    kind="delegation", result_read_at=None, state__in=["returned", "failed"]
                ),
                name="frame_unread",
            ),
            models.Index(
                fields=["due_at"], condition=Q(state__in=["open", "taken"]), name="frame_due"
            ),
            models.Index(
                fields=["id"], condition=Q(state__in=["open", "taken"]), name="frame_unended"
            ),
            models.Index(fields=["organisation", "-id"], name="frame_organisation"),
            models.Index(fields=["opener", "-id"], name="frame_opener"),
            models.Index(fields=["assignee", "-id"], name="frame_assignee"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=list(FrameState)), name="frame_state_known"
            ),
            models.CheckConstraint(condition=Q(kind__in=list(FrameKind)), name="frame_kind_known"),
            models.CheckConstraint(
                condition=Q(depth__gte=1) & Q(depth__lte=8), name="frame_depth_limit"
            ),
            models.CheckConstraint(
                condition=Q(parent__isnull=True, depth=1) | Q(parent__isnull=False, depth__gte=2),
                name="frame_depth_counts",
            ),
            models.CheckConstraint(
                condition=Q(kind="skill", opener=F("assignee"), allowed_tools__isnull=False)
                & ~Q(name="")
                & ~Q(state="open")
                | Q(kind="delegation", name="") & ~Q(opener=F("assignee")),
                name="frame_parties",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "taken"], ended_at=None)
                | Q(state__in=["returned", "failed", "cancelled"], ended_at__isnull=False),
                name="frame_ends_once",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["taken", "returned"]) | Q(taken_at__isnull=False),
                name="frame_taken_at_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name or gettext('delegation')} {self.id}"

    @FRAME.step("take", state)
    def take(self, *, at: datetime) -> None:
        """The assignee starts to work in it."""
        self.taken_at = at

    @FRAME.step("return_result", state)
    def return_result(self, result: Any, *, at: datetime) -> None:
        """The assignee finished."""
        self.result, self.ended_at = result, at

    @FRAME.step("fail", state)
    def fail(self, result: Any, *, reason: str = "", at: datetime) -> None:
        """No result will come; the opener gets the failure."""
        self.result, self.reason, self.ended_at = result, reason, at

    @FRAME.step("cancel", state)
    def cancel(self, *, reason: str, at: datetime) -> None:
        """The result is not needed any more."""
        self.reason, self.ended_at = reason, at
