"""Tables of the organisation: roles, groups, agents, rules, aliases, tool restrictions, keys."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import (
    MaxLengthValidator,
    MaxValueValidator,
    MinValueValidator,
    RegexValidator,
)
from django.db import models
from django.db.models import Q

from core.closed_sets import one_of
from core.limits import MAX_SENTENCE, MAX_SUBJECT, MAX_TEXT
from orgchart.pauses.models import Pause as Pause  # noqa: PLC0414  a table of this app
from orgchart.people.models import GivenPassword as GivenPassword  # noqa: PLC0414  as above
from orgchart.people.models import Membership as Membership  # noqa: PLC0414  as above
from orgchart.people.models import SavedFilter as SavedFilter  # noqa: PLC0414  as above
from orgchart.policy.vocabulary import (
    BOARD,
    HANDLE_FORM,
    HANDLE_MEANT,
    LOWEST_LEVEL,
    ContractScope,
    Kind,
    Relation,
)
from orgchart.second_person.models import PendingChange as PendingChange  # noqa: PLC0414  a table of this app

HANDLE = RegexValidator(HANDLE_FORM, HANDLE_MEANT)


def text_array() -> ArrayField[list[str], list[str]]:
    """An array of short strings, empty by default."""
    return ArrayField(models.CharField(max_length=200), default=list, blank=True)


def well_named(column: str, *, or_empty: bool = False) -> models.CheckConstraint:
    """The column holds a name in the form of a handle: ASCII, so that no look-alike passes."""
    condition = Q(**{f"{column}__regex": HANDLE_FORM})
    return models.CheckConstraint(
        condition=condition | Q(**{column: ""}) if or_empty else condition,
        name=f"%(class)s_{column}_form",
    )


class Organisation(models.Model):
    """A tenant. `policy_version` counts every change of who may what."""

    slug = models.CharField(max_length=64, unique=True, validators=[HANDLE])
    name = models.CharField(max_length=200)
    description = models.TextField(max_length=MAX_TEXT, blank=True)
    settings = models.JSONField(default=dict, blank=True)
    policy_version = models.PositiveBigIntegerField(default=1)

    class Meta:
        constraints = [well_named("slug")]

    def __str__(self) -> str:
        return self.name


class Role(models.Model):
    """What its holders may do (Spec: organisation 3)."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="roles")
    name = models.CharField(max_length=64, validators=[HANDLE])
    title = models.CharField(max_length=MAX_SUBJECT)
    level = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(LOWEST_LEVEL)]
    )
    kind = models.CharField(max_length=16, choices=[(k, k) for k in Kind])
    summary = models.TextField(max_length=MAX_TEXT, blank=True)
    tools = text_array()
    denied_tools = text_array()
    prohibitions = ArrayField(
        models.TextField(validators=[MaxLengthValidator(MAX_SENTENCE)]), default=list, blank=True
    )
    files_read = text_array()
    files_write = text_array()
    files_deny = text_array()
    files_contract = models.CharField(
        max_length=8, choices=[(c, c) for c in ContractScope], default=ContractScope.NONE
    )
    task_lead = models.BooleanField(default=False)
    permissions = models.JSONField(default=dict, blank=True)
    offices = text_array()

    class Meta:
        ordering = ["organisation", "level", "name"]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="role_name_once"),
            models.CheckConstraint(condition=Q(level__gte=1), name="role_level_from_1"),
            one_of("kind", Kind, name="role_kind_known"),
            models.CheckConstraint(condition=~Q(name=BOARD), name="role_is_not_board"),
            well_named("name"),
        ]

    def __str__(self) -> str:
        return self.name


class Group(models.Model):
    """A team with one leader (Spec: groups 2)."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="groups")
    slug = models.CharField(max_length=64, validators=[HANDLE])
    name = models.CharField(max_length=200)
    context = models.TextField(max_length=MAX_TEXT, blank=True)
    member_delegation = models.BooleanField(default=False)

    class Meta:
        ordering = ["organisation", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "slug"], name="group_slug_once"),
            well_named("slug"),
        ]

    def __str__(self) -> str:
        return self.slug


class Agent(models.Model):
    """One holder of a role. Deactivated rather than deleted: its mails and events stay."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="agents")
    handle = models.CharField(max_length=64, validators=[HANDLE])
    role = models.ForeignKey(Role, models.PROTECT, related_name="agents")
    title = models.CharField(max_length=MAX_SUBJECT, blank=True)
    active = models.BooleanField(default=True)
    reports_to = models.ForeignKey(
        "self", models.PROTECT, related_name="reports", null=True, blank=True
    )
    co_managers = models.ManyToManyField("self", symmetrical=False, blank=True, related_name="+")
    group = models.ForeignKey(Group, models.PROTECT, related_name="members", null=True, blank=True)
    name = models.CharField(max_length=64, blank=True, validators=[HANDLE])
    is_leader = models.BooleanField(default=False)
    skills = text_array()
    system_prompt = models.TextField(max_length=MAX_TEXT, blank=True)
    job_description = models.TextField(max_length=MAX_TEXT, blank=True)

    class Meta:
        ordering = ["organisation", "role__level", "handle"]
        indexes = [models.Index(fields=["id"], condition=Q(active=False), name="agent_left")]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "handle"], name="agent_handle_once"),
            models.UniqueConstraint(
                fields=["group", "name"], condition=Q(group__isnull=False), name="agent_name_once"
            ),
            models.UniqueConstraint(
                fields=["group"], condition=Q(is_leader=True), name="group_leader_once"
            ),
            models.CheckConstraint(condition=~Q(handle=BOARD), name="agent_is_not_board"),
            well_named("handle"),
            well_named("name", or_empty=True),
            models.CheckConstraint(
                condition=~Q(reports_to=models.F("id")), name="agent_not_own_superior"
            ),
        ]

    def __str__(self) -> str:
        return self.handle


class Alias(models.Model):
    """Another name of an agent (Spec: organisation 18)."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="aliases")
    alias = models.CharField(max_length=64, validators=[HANDLE])
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="aliases")

    class Meta:
        ordering = ["organisation", "alias"]
        verbose_name_plural = "aliases"
        constraints = [
            models.UniqueConstraint(fields=["organisation", "alias"], name="alias_once"),
            well_named("alias"),
        ]

    def __str__(self) -> str:
        return self.alias


class MailTypeRule(models.Model):
    """The ceiling of a mail type (Spec: mail 5). `senders` null: every role."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="mail_types")
    name = models.CharField(max_length=32, validators=[HANDLE])
    senders = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    issued_by = text_array()
    to_superior = models.BooleanField(default=False)
    description = models.TextField(max_length=MAX_SENTENCE, blank=True)

    class Meta:
        ordering = ["organisation", "name"]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="mail_type_once"),
            well_named("name"),
        ]

    def __str__(self) -> str:
        return self.name


class ContactRule(models.Model):
    """One role may write to another (Spec: mail 8). `recipient` null: the Board."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="contacts")
    sender = models.ForeignKey(Role, models.CASCADE, related_name="+")
    recipient = models.ForeignKey(Role, models.CASCADE, related_name="+", null=True, blank=True)
    types = ArrayField(models.CharField(max_length=32), null=True, blank=True)
    needs_contract = models.BooleanField(default=False)
    relation = models.CharField(
        max_length=8, choices=[(r, r) for r in Relation], default=Relation.ANY
    )

    class Meta:
        ordering = ["organisation", "sender", "recipient"]
        constraints = [
            models.UniqueConstraint(
                fields=["sender", "recipient"], nulls_distinct=False, name="contact_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.sender} -> {self.recipient or BOARD}"


class ToolOverride(models.Model):
    """A restriction of one tool (Spec: tools 14): never adds what the tool or the role lacks.

    Holds for one agent, one role, or, with neither, the whole organisation. No modes: taken away.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="overrides")
    tool = models.CharField(max_length=64)
    role = models.ForeignKey(Role, models.CASCADE, null=True, blank=True, related_name="+")
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, related_name="+")
    modes = text_array()
    set_by = models.CharField(max_length=100)
    reason = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["organisation", "tool"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "tool", "role", "agent"],
                nulls_distinct=False,
                name="override_once",
            ),
            models.CheckConstraint(
                condition=Q(role__isnull=True) | Q(agent__isnull=True), name="override_one_scope"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool}: {', '.join(self.modes) or 'taken away'}"


class ApiKey(models.Model):
    """An API key of an agent. Only its digest is stored; the key is shown once."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=100)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | ~Q(revoked_by=""),
                name="key_revoked_by_someone",
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"
