"""Cases, what their offices submitted, and the violations of the constitution."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext

from core.closed_sets import one_of
from core.limits import MAX_SUBJECT
from governance.cases.moves import STAGES, STATES, SUBMITTED
from governance.cases.vocabulary import OFFICE_OF, OFFICES, Fault, Outcome, Signal, Stage, State
from orgchart.models import Agent, Organisation
from orgchart.policy.vocabulary import Office

AMENDABLE = (Stage.ANALYSIS, Stage.TASKS, Stage.REVIEW)
"""Stages of which a person's version can follow the office's own; never another."""
SHA256 = r"^[0-9a-f]{64}$"
LEGAL_OUTCOMES = reduce(
    or_,
    (Q(stage=s.value, outcome__in=[o.value for o in OFFICES[OFFICE_OF[s]].outcomes])
     for s in SUBMITTED),
)  # fmt: skip


class Case(models.Model):
    """One case from its request to its end (Spec: constitution 7, 29).

    `round` is the iteration, `max_rounds` the last one allowed. `failed_by` is the signal that
    brought the case to its verdict, `paused_by` the mandatory stop that waits for a person.
    """

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    title = models.CharField(max_length=MAX_SUBJECT)
    request = models.TextField()
    request_sha256 = models.CharField(max_length=64)
    opened_by = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    opened_by_name = models.CharField(max_length=160)
    opened_at = models.DateTimeField()
    state = STATES.field(max_length=16)
    stage = STAGES.field(max_length=16)
    round = models.PositiveIntegerField(default=1)
    max_rounds = models.PositiveIntegerField(default=3)
    failed_by = models.CharField(max_length=24, blank=True)
    paused_by = models.CharField(max_length=24, blank=True)
    version = models.PositiveIntegerField(default=1)
    moved_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="case_newest"),
            models.Index(fields=["organisation", "state", "-id"], name="case_by_state"),
            models.Index(
                fields=["state", "-id"],
                condition=Q(state__in=[State.OPEN, State.PAUSED]),
                name="case_unended",
            ),
            models.Index(
                fields=["opened_by", "-opened_at"],
                condition=Q(opened_by__isnull=False),
                name="case_opened",
            ),
        ]
        constraints = [
            one_of("state", State, name="case_state_known"),
            one_of("stage", Stage, name="case_stage_known"),
            models.CheckConstraint(
                condition=Q(failed_by__in=["", *(s.value for s in Signal)])
                & Q(paused_by__in=["", *(s.value for s in Signal)]),
                name="case_signals_known",
            ),
            models.CheckConstraint(
                condition=Q(round__gte=1, max_rounds__gte=1, max_rounds__lte=100, version__gte=1),
                name="case_counts_from_1",
            ),
            models.CheckConstraint(
                condition=(Q(state="paused", stage="VERDICT") & ~Q(paused_by="") & ~Q(failed_by=""))
                | Q(state="stopped")
                | Q(state__in=["open", "delivered"], paused_by=""),
                name="case_paused_says_why",
            ),
            models.CheckConstraint(
                condition=~Q(state="open") | Q(round__lte=F("max_rounds")),
                name="case_runs_in_limit",
            ),
            models.CheckConstraint(
                condition=~Q(state="delivered") | Q(stage="VERDICT", failed_by=""),
                name="case_delivers_no_failure",
            ),
            models.CheckConstraint(
                condition=Q(request__regex=r"\S", title__regex=r"\S"), name="case_has_a_request"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id}: {self.title}"

    resume = STATES.plain_step("resume", state)
    pause = STATES.plain_step("pause", state)
    deliver = STATES.plain_step("deliver", state)
    stop = STATES.plain_step("stop", state)
    to_analysis = STAGES.plain_step("to_analysis", stage)
    to_tasks = STAGES.plain_step("to_tasks", stage)
    to_implementation = STAGES.plain_step("to_implementation", stage)
    to_review = STAGES.plain_step("to_review", stage)
    to_test = STAGES.plain_step("to_test", stage)
    to_verdict = STAGES.plain_step("to_verdict", stage)


class Artifact(models.Model):
    """What one stage of one round said; addressed by digest, never overwritten. Insert-only.

    `revision` 0 is the office's own. A person's amendment or overruling is a further revision that
    names the person; the original stays (Spec: constitution 12, 19, 22). `number` is the case's
    version that it made. `signals` are failure signals that the system found in it.
    """

    id = models.CharField(primary_key=True, max_length=48)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    case = models.ForeignKey(Case, models.PROTECT, related_name="artifacts", db_index=False)
    number = models.PositiveIntegerField()
    round = models.PositiveIntegerField()
    stage = models.CharField(max_length=16, choices=[(s.value, s.value) for s in SUBMITTED])
    revision = models.PositiveIntegerField()
    author = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    author_name = models.CharField(max_length=160)
    outcome = models.CharField(max_length=24, choices=[(o.value, o.value) for o in Outcome])
    content = models.JSONField()
    evidence = models.JSONField(default=list)
    signals = ArrayField(models.CharField(max_length=24), default=list)
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["case", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "case", "round", "stage", "revision"],
                name="artifact_stage_once",
            ),
            models.UniqueConstraint(
                fields=["organisation", "case", "number"], name="artifact_number_once"
            ),
            models.CheckConstraint(
                condition=Q(revision=0, author__isnull=False)
                | Q(
                    revision__gte=1,
                    author__isnull=True,
                    stage__in=[s.value for s in AMENDABLE],
                ),
                name="artifact_person_amends",
            ),
            models.CheckConstraint(condition=LEGAL_OUTCOMES, name="artifact_outcome_legal"),
            models.CheckConstraint(
                condition=Q(stage="TEST") | Q(evidence=[]), name="artifact_evidence_is_of_test"
            ),
            models.CheckConstraint(
                condition=~Q(outcome="PASSED") | ~Q(evidence=[]), name="artifact_passes_on_evidence"
            ),
            models.CheckConstraint(condition=Q(sha256__regex=SHA256), name="artifact_has_digest"),
        ]

    def __str__(self) -> str:
        names = {"case": self.case_id, "stage": self.stage, "round": self.round}
        return gettext("%(case)s %(stage)s round %(round)s") % names


class CaseOfficer(models.Model):
    """An agent and the office in which it acts in one case; in no other (Spec: constitution 37).

    Insert-only: a role that the agent is given later changes nothing here.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    case = models.ForeignKey(Case, models.PROTECT, related_name="officers", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    office = models.CharField(max_length=16, choices=[(o.value, o.value) for o in Office])
    since = models.DateTimeField()

    class Meta:
        ordering = ["case", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "case", "agent"], name="case_officer_once"
            ),
            one_of("office", Office, name="case_officer_known"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} in {self.case_id}: {self.office}"


class Violation(models.Model):
    """One structural violation: an attempt that was refused and is kept. Insert-only."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    case = models.ForeignKey(Case, models.PROTECT, related_name="violations", db_index=False)
    round = models.PositiveIntegerField()
    stage = models.CharField(max_length=16, choices=[(s.value, s.value) for s in Stage])
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    agent_name = models.CharField(max_length=64)
    offices = ArrayField(models.CharField(max_length=16, choices=[(o, o) for o in Office]))
    fault = models.CharField(max_length=24, choices=[(f.value, f.value) for f in Fault])
    code = models.CharField(max_length=32)
    reason = models.TextField()
    aborted = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "agent", "-id"], name="violation_of_agent"),
            models.Index(fields=["organisation", "case", "id"], name="violation_of_case"),
            models.Index(fields=["organisation", "-at"], name="violation_at"),
            models.Index(fields=["organisation", "-id"], name="violation_newest"),
        ]
        constraints = [
            one_of("fault", Fault, name="violation_fault_known"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_name} in {self.case_id}: {self.fault}"
