"""Contracts, the reports on them and the verdicts about them; their history is the ledger's."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext

from contracts.deadline_models import Deadline
from contracts.issuing.models import OrgChangeLine
from contracts.vocabulary import (
    FINAL_STATES,
    MACHINE,
    OPEN_STATES,
    ContractKind,
    ContractMove,
    ContractState,
    ReportKind,
    VerdictFinding,
)
from core.closed_sets import choices_of, one_of
from core.limits import MAX_SUBJECT
from documents.models import ReportType
from mailroom.models import Escalation, Mail, Priority
from orgchart.models import Agent, Organisation
from orgchart.policy.vocabulary import BOARD, ToolMode

__all__ = ["Contract", "Deadline", "OrgChangeLine", "Report", "Verdict"]

BRANCH_FORM = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"
EXPIRING = (ContractKind.ORG_CHANGE.value, ContractKind.DEPLOYMENT_APPROVAL.value)
"""Kinds of contracts that authorise something until a time."""
APPROVAL = Q(kind=ContractKind.DEPLOYMENT_APPROVAL)
FINAL = Q(state__in=FINAL_STATES)
NEEDS_SUBMISSION = (ContractState.REVIEW, ContractState.PASSED, ContractState.FAILED)
NEEDS_ACCEPTANCE = (ContractState.IN_PROGRESS, *NEEDS_SUBMISSION)


class Contract(models.Model):
    """One contract: a mail of type `contract` with a state (Spec: contracts 1).

    Only its state, its issuer (when the issuer is deactivated) and the use of an approval change,
    each with a new version. Issuer null: the Board. `department` is where reports on it are filed;
    "" in what an earlier version of NEXUS issued: decided at each report.
    """

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(
        max_length=24, choices=choices_of(ContractKind), default=ContractKind.WORK
    )
    issuer = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    issuer_name = models.CharField(max_length=64)
    assignee = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    title = models.CharField(max_length=MAX_SUBJECT)
    body = models.TextField()
    priority = models.CharField(max_length=8, choices=Priority.choices, default=Priority.MEDIUM)
    deadline = models.DateTimeField(null=True, blank=True)
    mode = models.CharField(max_length=16, choices=choices_of(ToolMode), default=ToolMode.CHAT_SAFE)
    workspace_scope = ArrayField(models.CharField(max_length=1024), default=list, blank=True)
    assigned_branch = models.CharField(max_length=200, blank=True)
    grants = models.JSONField(default=list, blank=True)
    department = models.CharField(max_length=64, blank=True, default="", db_default="")
    supersedes = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="successors"
    )
    environment = models.CharField(max_length=63, blank=True)
    artifact = models.CharField(max_length=255, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    amount = models.DecimalField(max_digits=17, decimal_places=2, null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    state = MACHINE.field(max_length=16)
    version = models.PositiveIntegerField(default=1)
    answers = models.OneToOneField(
        Escalation, models.PROTECT, null=True, blank=True, related_name="+"
    )
    request = models.ForeignKey(
        Mail, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    notice = models.OneToOneField(Mail, models.PROTECT, related_name="contract")
    created_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.CharField(max_length=160, blank=True)
    closed_reason = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="contract_organisation"),
            models.Index(fields=["organisation", "state", "-id"], name="contract_state"),
            models.Index(
                fields=["state", "-id"], condition=Q(state__in=OPEN_STATES), name="contract_open"
            ),
            models.Index(
                fields=["deadline", "id", "organisation"],
                condition=Q(state__in=OPEN_STATES, deadline__isnull=False),
                name="contract_due",
            ),
            models.Index(fields=["assignee", "-id"], name="contract_assigned"),
            models.Index(fields=["assignee", "state", "-id"], name="contract_assigned_state"),
            models.Index(fields=["issuer", "-id"], name="contract_issued"),
            models.Index(fields=["issuer", "state", "-id"], name="contract_issued_state"),
            models.Index(fields=["organisation", "assigned_branch"], name="contract_branch"),
            models.Index(
                fields=["expires_at"],
                condition=Q(
                    kind="deployment_approval", state__in=["pending", "in_progress"], used_at=None
                ),
                name="contract_approval_due",
            ),
        ]
        constraints = [
            one_of("state", ContractState, name="contract_state_known"),
            one_of("kind", ContractKind, name="contract_kind_known"),
            one_of("mode", ToolMode, name="contract_mode_known"),
            one_of("priority", Priority, name="contract_priority_known"),
            models.CheckConstraint(condition=Q(version__gte=1), name="contract_version_from_1"),
            models.CheckConstraint(
                condition=Q(issuer__isnull=False) | Q(issuer_name=BOARD),
                name="contract_has_an_issuer",
            ),
            models.CheckConstraint(
                condition=Q(issuer__isnull=True) | ~Q(issuer=F("assignee")),
                name="contract_not_to_oneself",
            ),
            models.CheckConstraint(
                condition=(
                    Q(closed_at__isnull=False) & FINAL & ~Q(closed_by="") & ~Q(closed_reason="")
                )
                | (~FINAL & Q(closed_at=None, closed_by="", closed_reason="")),
                name="contract_final_is_closed",
            ),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=False) | ~Q(state__in=NEEDS_ACCEPTANCE),
                name="contract_accepted_first",
            ),
            models.CheckConstraint(
                condition=Q(submitted_at__isnull=False) | ~Q(state__in=NEEDS_SUBMISSION),
                name="contract_submitted_first",
            ),
            models.CheckConstraint(
                condition=(
                    APPROVAL
                    & Q(expires_at__isnull=False, issuer__isnull=False)
                    & Q(expires_at__gt=F("created_at"))
                    & ~Q(environment="")
                    & ~Q(artifact="")
                )
                | (~APPROVAL & Q(environment="", artifact="", used_at=None)),
                name="contract_approval_says_what",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=EXPIRING, expires_at__gt=F("created_at"))
                | (~Q(kind__in=EXPIRING) & Q(expires_at=None)),
                name="contract_authorisation_expires",
            ),
            models.CheckConstraint(
                condition=Q(used_at=None) | Q(used_at__lt=F("expires_at")),
                name="contract_used_in_time",
            ),
            models.CheckConstraint(
                condition=Q(amount=None, currency="")
                | (
                    Q(kind=ContractKind.BUDGET, amount__isnull=False, amount__gt=0)
                    & ~Q(currency="")
                ),
                name="contract_amount_is_a_budget",
            ),
            models.CheckConstraint(
                condition=Q(request=None) | Q(kind=ContractKind.BUDGET),
                name="contract_request_of_a_budget",
            ),
            models.UniqueConstraint(
                fields=["request"],
                condition=~Q(state=ContractState.CANCELLED),
                name="contract_request_answered_once",
            ),
            models.CheckConstraint(
                condition=Q(assigned_branch="")
                | (
                    Q(assigned_branch__regex=BRANCH_FORM)
                    & ~Q(assigned_branch__iregex=r"^(main|master|production|head)$")
                ),
                name="contract_branch_is_its_own",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id}: {self.title}"

    @MACHINE.step(ContractMove.ACCEPT, state)
    def accept(self, *, at: datetime) -> None:
        """The assignee starts."""
        self.accepted_at = at

    @MACHINE.step(ContractMove.SUBMIT, state)
    def submit(self, *, at: datetime) -> None:
        """The assignee has finished."""
        self.submitted_at = at

    @MACHINE.step(ContractMove.REWORK, state)
    def rework(self) -> None:
        """The issuer sends the work back; the next submission is another one."""
        self.submitted_at = None

    @MACHINE.step(ContractMove.PASS, state)
    def close_passed(self, *, at: datetime, by: str, reason: str) -> None:
        """The issuer accepts the work."""
        self._close(at, by, reason)

    @MACHINE.step(ContractMove.FAIL, state)
    def close_failed(self, *, at: datetime, by: str, reason: str) -> None:
        """The issuer rejects the work."""
        self._close(at, by, reason)

    @MACHINE.step(ContractMove.CANCEL, state)
    def close_cancelled(self, *, at: datetime, by: str, reason: str) -> None:
        """The issuer, the Board, or the expiry of an approval cancels it."""
        self._close(at, by, reason)

    def _close(self, at: datetime, by: str, reason: str) -> None:
        self.closed_at, self.closed_by, self.closed_reason = at, by, reason


class Report(models.Model):
    """What an assignee reported on its contract; a completion is a numbered submission.

    `commit` is where the contract's branch was when it was submitted. Insert-only.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, models.PROTECT, related_name="reports")
    kind = models.CharField(max_length=16, choices=choices_of(ReportKind))
    submission = models.PositiveIntegerField(null=True, blank=True)
    report_type = models.CharField(max_length=16, choices=ReportType.choices)
    title = models.CharField(max_length=MAX_SUBJECT)
    body = models.TextField()
    author = models.ForeignKey(Agent, models.PROTECT, related_name="+")
    mail = models.OneToOneField(Mail, models.PROTECT, related_name="+")
    commit = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["organisation", "-id"], name="report_organisation")]
        constraints = [
            one_of("kind", ReportKind, name="report_kind_known"),
            one_of("report_type", ReportType, name="report_type_known"),
            models.UniqueConstraint(
                fields=["contract", "submission"], name="report_submission_once"
            ),
            models.CheckConstraint(
                condition=Q(kind=ReportKind.COMPLETION, submission__isnull=False, submission__gte=1)
                | (~Q(kind=ReportKind.COMPLETION) & Q(submission=None)),
                name="report_completion_is_numbered",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(part)s of %(whole)s") % {
            "part": self.get_kind_display(),
            "whole": self.contract_id,
        }


class Verdict(models.Model):
    """What QA found in one submission. Insert-only; a trigger keeps each judge to one verdict.

    `commit` is the one submitted; `run_digest` is of the log of the judge's last run on it.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, models.PROTECT, related_name="verdicts")
    report = models.ForeignKey(Report, models.PROTECT, related_name="verdicts")
    finding = models.CharField(max_length=4, choices=choices_of(VerdictFinding))
    evidence = models.JSONField(default=str, blank=True)
    body = models.TextField(blank=True)
    judge = models.ForeignKey(Agent, models.PROTECT, related_name="+")
    mail = models.OneToOneField(Mail, models.PROTECT, related_name="+")
    commit = models.CharField(max_length=64, blank=True)
    run_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["organisation", "-id"], name="verdict_organisation")]
        constraints = [
            one_of("finding", VerdictFinding, name="verdict_finding_known"),
            models.CheckConstraint(
                condition=~Q(evidence="") | ~Q(body=""), name="verdict_has_evidence"
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(finding)s on %(contract)s") % {
            "finding": self.get_finding_display(),
            "contract": self.contract_id,
        }
