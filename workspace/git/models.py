"""Tables of git: repositories, where their branches are, agents' drafts, and every move."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from contracts.models import Contract, Verdict
from core.closed_sets import one_of
from orgchart.models import Agent, Organisation

COMMIT = 64
"""Characters of a commit's id, SHA-256 included."""


class MoveKind(models.TextChoices):
    """Why a branch of the repository moved."""

    CREATE = "create"
    IMPORT = "import"
    PUSH = "push"
    MERGE = "merge"


class Repository(models.Model):
    """The bare repository of an organisation: created here, or imported from `source`.

    `pushed_back` is the commit of `main` that `source` has, where the product pushed it there.
    After `push_attempts` in vain the next push is at `push_due_at`; null: at the next merge.
    """

    organisation = models.OneToOneField(Organisation, models.CASCADE, related_name="+")
    main = models.CharField(max_length=200)
    source = models.CharField(max_length=500, blank=True)
    pushed_back = models.CharField(max_length=COMMIT, blank=True)
    push_attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    push_due_at = models.DateTimeField(null=True, blank=True)
    packed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "repositories"
        constraints = [
            models.CheckConstraint(condition=~Q(main=""), name="repository_has_a_main_branch")
        ]

    def __str__(self) -> str:
        return gettext("repository of %(organisation)s") % {"organisation": self.organisation}


class Branch(models.Model):
    """Where a branch is. This row decides: the ref in the repository's folder follows it.

    `contract` is the contract under which it was pushed last; null for the main branch.
    """

    repository = models.ForeignKey(Repository, models.CASCADE, related_name="branches")
    name = models.CharField(max_length=200)
    commit = models.CharField(max_length=COMMIT)
    contract = models.ForeignKey(Contract, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        verbose_name_plural = "branches"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "name"], name="branch_once"),
            models.CheckConstraint(condition=~Q(commit=""), name="branch_has_a_commit"),
        ]

    def __str__(self) -> str:
        return self.name


class Draft(models.Model):
    """The branch of a contract as its assignee has it: its last commit, pushed or not.

    `checked_out` is true for the one that is in the agent's work tree. While the main branch is
    being taken in, `merging` is its commit, `merged_tree` what the files began as, and `conflicts`
    are the files that git could not merge.
    """

    contract = models.OneToOneField(Contract, models.CASCADE, related_name="+")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+")
    branch = models.CharField(max_length=200)
    commit = models.CharField(max_length=COMMIT)
    checked_out = models.BooleanField(default=False)
    merging = models.CharField(max_length=COMMIT, blank=True)
    merged_tree = models.CharField(max_length=COMMIT, blank=True)
    conflicts = ArrayField(models.TextField(), default=list, blank=True)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent"], condition=Q(checked_out=True), name="draft_one_checked_out"
            ),
            models.CheckConstraint(condition=~Q(commit=""), name="draft_has_a_commit"),
        ]

    def __str__(self) -> str:
        return f"{self.branch} of {self.contract_id}"

    @property
    def base(self) -> str:
        """The commit or tree that the files of the work tree began as."""
        return self.merged_tree or self.commit


class BranchMove(models.Model):
    """A branch of the repository moved: who, from which commit to which, under which contract.

    Insert-only. A merge names the verdict that allowed it.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    repository = models.ForeignKey(Repository, models.CASCADE, related_name="moves")
    branch = models.CharField(max_length=200)
    kind = models.CharField(max_length=8, choices=MoveKind.choices)
    old = models.CharField(max_length=COMMIT, blank=True)
    new = models.CharField(max_length=COMMIT)
    merged = models.CharField(max_length=COMMIT, blank=True)
    contract = models.ForeignKey(Contract, models.PROTECT, null=True, blank=True, related_name="+")
    verdict = models.ForeignKey(Verdict, models.PROTECT, null=True, blank=True, related_name="+")
    by = models.CharField(max_length=160)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["organisation", "-id"], name="branch_move_organisation")]
        constraints = [
            one_of("kind", MoveKind, name="branch_move_kind_known"),
            models.CheckConstraint(
                condition=~Q(kind__in=["push", "merge"]) | Q(contract__isnull=False),
                name="branch_move_under_a_contract",
            ),
            models.CheckConstraint(
                condition=Q(kind="merge", verdict__isnull=False) & ~Q(merged="")
                | ~Q(kind="merge") & Q(verdict=None, merged=""),
                name="branch_merge_has_a_verdict",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(part)s of %(whole)s") % {
            "part": self.get_kind_display(),
            "whole": self.branch,
        }
