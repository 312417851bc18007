"""Tasks, dependencies, comments, experience of agents, and feedback of users."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from core.closed_sets import one_of
from orgchart.models import Agent, Organisation
from tasks.vocabulary import MACHINE, MAX_TASK_SUBJECT, ListIndex, Status, TaskType

UNOWNED = Q(owner__isnull=True)
TAKEABLE = UNOWNED & Q(status__in=["pending", "in_progress"], open_blockers=0)
UNDATED = Q(owner__isnull=False, lease_due_at__isnull=True, status="in_progress", is_assigned=False)
CROSS_ROLE = ~Q(required_role="") & Q(owner__isnull=False) & Q(cross_role=True)


def listed_by(
    index: ListIndex, *columns: str, name: str, condition: Q | None = None
) -> models.Index:
    """An index that a list reads newest first: of each status and writer, a range of its own."""
    newest = F("number") * Value(-index.value)
    filters = ("organisation", "status", *columns, "subject_writer")
    return models.Index(*filters, newest, name=name, condition=condition)


class Counter(models.Model):
    """The last task number of an organisation. A number is never used twice."""

    organisation = models.OneToOneField(
        Organisation, models.CASCADE, primary_key=True, related_name="+"
    )
    last = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.organisation_id}: {self.last}"


class Task(models.Model):
    """One task (Spec: tasks 1). `required_role` and `task_type` are '' where undefined.

    `version` grows with every change of the object; `open_blockers` and `dependents` count
    unfinished neighbours and change without it. `workers` are the agents that did the work:
    they owned it, started or completed it, or changed its content after its start.
    `subject_writer` and `text_writers` are the agents that wrote each text last, 0 for people
    (Spec: tasks 56). `is_assigned`: a manager or lead set the owner, so that no lease covers it.
    """

    organisation = models.ForeignKey(
        Organisation, models.CASCADE, related_name="tasks", db_index=False
    )
    number = models.BigIntegerField()
    subject = models.CharField(max_length=MAX_TASK_SUBJECT)
    description = models.TextField(blank=True)
    active_form = models.CharField(max_length=MAX_TASK_SUBJECT, blank=True)
    status = MACHINE.field(max_length=16)
    owner = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    metadata = models.JSONField(default=dict, blank=True)
    required_role = models.CharField(max_length=64, blank=True)
    task_type = models.CharField(max_length=32, blank=True, choices=[(t, t) for t in TaskType])
    version = models.IntegerField(default=1, db_default=1)
    rank = models.IntegerField(default=0, db_default=0)
    open_blockers = models.IntegerField(default=0, db_default=0)
    dependents = models.IntegerField(default=0, db_default=0)
    cross_role = models.BooleanField(default=False, db_default=False)
    owner_role = models.CharField(max_length=64, blank=True, db_default="")
    workers = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    completed_by = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    approved_by = models.CharField(max_length=100, blank=True, db_default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    lease_due_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=100)
    creator = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    subject_writer = models.BigIntegerField(default=0, db_default=0)
    text_writers = models.JSONField(default=dict, blank=True, db_default={})
    is_assigned = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["organisation", "-number"]
        indexes = [
            models.Index(fields=["organisation", "status", "number"], name="task_by_status"),
            models.Index(fields=["organisation", "-id"], name="task_newest"),
            listed_by(ListIndex.WRITER, name="task_by_writer"),
            listed_by(ListIndex.ROLE, "required_role", name="task_by_role"),
            listed_by(ListIndex.OWNER, "owner", name="task_by_owner"),
            listed_by(
                ListIndex.ACROSS, "owner_role", name="task_across_roles", condition=CROSS_ROLE
            ),
            listed_by(ListIndex.UNOWNED, name="task_unowned", condition=UNOWNED),
            listed_by(
                ListIndex.UNOWNED_ROLE,
                "required_role",
                name="task_unowned_role",
                condition=UNOWNED,
            ),
            models.Index(
                fields=[
                    "organisation",
                    "required_role",
                    "task_type",
                    "-rank",
                    "-dependents",
                    "number",
                ],
                condition=TAKEABLE,
                name="task_takeable",
            ),
            models.Index(
                fields=["organisation", "-rank", "number"],
                condition=UNOWNED & Q(status="pending"),
                name="task_backlog",
            ),
            models.Index(
                fields=["lease_due_at"],
                condition=Q(lease_due_at__isnull=False),
                name="task_lease_due",
            ),
            models.Index(fields=["organisation"], condition=UNDATED, name="task_undated"),
            models.Index(
                fields=["organisation", "completed_at"],
                condition=Q(completed_at__isnull=False),
                name="task_completed",
            ),
            BrinIndex(fields=["created_at"], name="task_created", autosummarize=True),
            models.Index(
                fields=["organisation", "claimed_at"],
                include=["cross_role"],
                condition=Q(claimed_at__isnull=False),
                name="task_claimed",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "number"], name="task_number_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="task_number_from_1"),
            models.CheckConstraint(condition=Q(version__gte=1), name="task_version_from_1"),
            one_of("status", Status, name="task_status_known"),
            one_of("task_type", ["", *TaskType], name="task_type_known"),
            models.CheckConstraint(
                condition=~Q(status="completed") | Q(completed_at__isnull=False),
                name="task_completed_has_time",
            ),
            models.CheckConstraint(
                condition=Q(open_blockers__gte=0) & Q(dependents__gte=0),
                name="task_counts_not_negative",
            ),
            models.CheckConstraint(
                condition=~Q(status="completed") | Q(open_blockers=0),
                name="task_completed_not_blocked",
            ),
            models.CheckConstraint(
                condition=Q(lease_due_at__isnull=True)
                | Q(owner__isnull=False, status="in_progress", is_assigned=False),
                name="task_lease_has_holder",
            ),
            models.CheckConstraint(
                condition=Q(owner__isnull=True) | Q(claimed_at__isnull=False),
                name="task_owner_has_claimed",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.subject}"

    start = MACHINE.plain_step("start", status)
    complete = MACHINE.plain_step("complete", status)
    remove = MACHINE.plain_step("remove", status)
    remove_completed = MACHINE.plain_step("remove_completed", status)


class Dependency(models.Model):
    """`blocker` must end before `blocked` may start or complete.

    A trigger refuses circles, under the organisation's lock for dependencies.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    blocker = models.ForeignKey(Task, models.CASCADE, related_name="blocks", db_index=False)
    blocked = models.ForeignKey(Task, models.CASCADE, related_name="blocked_by", db_index=False)

    class Meta:
        verbose_name_plural = "dependencies"
        indexes = [models.Index(fields=["blocked", "blocker"], name="dependency_blocked")]
        constraints = [
            models.UniqueConstraint(fields=["blocker", "blocked"], name="dependency_once"),
            models.CheckConstraint(condition=~Q(blocker=F("blocked")), name="dependency_not_self"),
        ]

    def __str__(self) -> str:
        return f"{self.blocker_id} blocks {self.blocked_id}"


class Comment(models.Model):
    """One comment on a task (Spec: tasks 46). `writer` is the agent's id, 0 for people."""

    task = models.ForeignKey(Task, models.CASCADE, related_name="comments", db_index=False)
    author = models.CharField(max_length=100)
    writer = models.BigIntegerField(default=0, db_default=0)
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["task", "id"], name="comment_of_task")]

    def __str__(self) -> str:
        return f"{self.author}: {self.body[:40]}"


class Experience(models.Model):
    """How many tasks of a type an agent has completed, for recommendations."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_index=False)
    task_type = models.CharField(max_length=32, blank=True)
    completed = models.IntegerField()

    class Meta:
        verbose_name_plural = "experience"
        constraints = [
            models.UniqueConstraint(fields=["agent", "task_type"], name="experience_once")
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.task_type}: {self.completed}"


class Feedback(models.Model):
    """A report of a product user. `external_id` makes an import or a webhook repeatable."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    source = models.CharField(max_length=64, blank=True)
    author = models.CharField(max_length=200, blank=True)
    category = models.CharField(max_length=64, blank=True)
    rating = models.SmallIntegerField(null=True, blank=True)
    body = models.TextField()
    external_id = models.CharField(max_length=200, blank=True)
    received_at = models.DateTimeField()
    task = models.ForeignKey(Task, models.SET_NULL, null=True, blank=True, related_name="feedback")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "feedback"
        indexes = [
            models.Index(fields=["organisation", "id"], name="feedback_newest"),
            models.Index(fields=["organisation", "category", "id"], name="feedback_category"),
            models.Index(fields=["organisation", "source", "id"], name="feedback_source"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "external_id"],
                condition=~Q(external_id=""),
                name="feedback_once",
            ),
            models.CheckConstraint(
                condition=Q(rating__isnull=True) | Q(rating__range=(1, 5)),
                name="feedback_rating_1_to_5",
            ),
        ]

    def __str__(self) -> str:
        return self.body[:60]


class FeedbackHook(models.Model):
    """The secret of an organisation's feedback webhook, and the bytes it has used of its limit."""

    organisation = models.OneToOneField(Organisation, models.CASCADE, related_name="+")
    secret = models.CharField(max_length=100)
    used = models.FloatField(default=0)
    used_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"feedback hook of {self.organisation}"
