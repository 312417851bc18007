"""Documents, memories and artifacts: rows that never change; their files are written from them."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from core.closed_sets import one_of
from core.limits import MAX_SUBJECT
from orgchart.models import Agent, Group, Organisation


class DocumentKind(models.TextChoices):
    """What a document is (Spec: files 12, files 13, files 15)."""

    NOTE = "note"
    REPORT = "report"
    PRD = "prd", "PRD"


class ReportType(models.TextChoices):
    """What a report is about (Spec: tools 24)."""

    STATUS = "status"
    COMPLETION = "completion"
    ESCALATION = "escalation"
    COST = "cost"


NAMES_CONTRACT = ~Q(contract_ref="")


class Document(models.Model):
    """One document. The row is the truth and never changes; `filed_at` says its file is there.

    `folder` is the path without the file's name, ending in '/': what scopes and pages go by.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=8, choices=DocumentKind.choices)
    author = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    folder = models.CharField(max_length=200)
    path = models.CharField(max_length=400)
    title = models.CharField(max_length=MAX_SUBJECT)
    body = models.TextField()
    sha256 = models.CharField(max_length=64)
    report_type = models.CharField(max_length=16, choices=ReportType.choices, blank=True)
    department = models.CharField(max_length=64, blank=True)
    for_board = models.BooleanField(default=False)
    contract_ref = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField()
    filed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["organisation", "kind", "folder", "-created_at", "-id"],
                name="document_folder",
            ),
            models.Index(
                fields=["organisation", "folder", "report_type", "-created_at", "-id"],
                condition=Q(kind="report"),
                name="document_report_type",
            ),
            models.Index(fields=["organisation", "-created_at", "-id"], name="document_newest"),
            models.Index(fields=["organisation", "-id"], name="document_organisation"),
            models.Index(fields=["author", "-created_at", "-id"], name="document_author"),
            models.Index(fields=["author", "kind", "-created_at", "-id"], name="document_kind"),
            models.Index(
                fields=["author", "report_type", "-created_at", "-id"],
                condition=Q(kind="report"),
                name="document_author_type",
            ),
            models.Index(
                fields=["organisation", "-created_at"],
                condition=Q(for_board=True),
                name="document_for_board",
            ),
            models.Index(
                fields=["contract_ref"], condition=NAMES_CONTRACT, name="document_contract"
            ),
            models.Index(
                fields=["created_at"], condition=Q(filed_at=None), name="document_unfiled"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "path"], name="document_path_once"),
            one_of("kind", DocumentKind, name="document_kind_known"),
            models.CheckConstraint(
                condition=Q(kind=DocumentKind.REPORT, report_type__in=ReportType.values)
                & ~Q(department="")
                | ~Q(kind=DocumentKind.REPORT) & Q(report_type="", department=""),
                name="document_report_has_a_type",
            ),
            models.CheckConstraint(
                condition=Q(for_board=False) | Q(kind=DocumentKind.NOTE),
                name="document_board_reads_notes",
            ),
            models.CheckConstraint(
                condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="document_digest_form"
            ),
        ]

    def __str__(self) -> str:
        return self.path


class MemoryScope(models.TextChoices):
    """Which agents share a memory (Spec: memory 1)."""

    AGENT = "agent"
    GROUP = "group"
    ORGANISATION = "organisation"


WORDS_IN_A_MEMORY = (
    "words || array_to_tsvector(ARRAY[scope::text || ' ' || "
    "COALESCE(agent_id, group_id, organisation_id)::text])"
)
"""SQL: the lexemes of an entry, and one more with a space in it, which no text has: the memory that
it is in. So a search reads what matches in the memories it searches, whatever others hold.
"""


class Memory(models.Model):
    """One entry of a MEMORY.md. Never changes; `words` is what a search reads.

    Its author is an agent or a `person`. An entry that `replaces` another corrects it, or withdraws
    it if its own text is empty.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    scope = models.CharField(max_length=16, choices=MemoryScope.choices)
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+", db_index=False)
    group = models.ForeignKey(Group, models.PROTECT, null=True, related_name="+", db_index=False)
    author = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+", db_index=False)
    person = models.CharField(max_length=150, blank=True, default="", db_default="")
    replaces = models.OneToOneField("self", models.PROTECT, null=True, related_name="replaced_by")
    text = models.TextField()
    words = SearchVectorField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "memories"
        indexes = [
            models.Index(fields=["agent", "-id"], condition=Q(scope="agent"), name="memory_agent"),
            models.Index(
                fields=["group", "-id"], condition=Q(group__isnull=False), name="memory_group"
            ),
            models.Index(
                fields=["organisation", "-id"],
                condition=Q(scope="organisation"),
                name="memory_organisation",
            ),
            models.Index(fields=["author", "-id"], name="memory_author"),
            models.Index(fields=["organisation", "-id"], name="memory_newest"),
            GinIndex(RawSQL(WORDS_IN_A_MEMORY, []), name="memory_words"),  # noqa: S611 - a constant
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(scope="agent", agent__isnull=False, group__isnull=True)
                | Q(scope="group", agent__isnull=True, group__isnull=False)
                | Q(scope="organisation", agent__isnull=True, group__isnull=True),
                name="memory_has_one_owner",
            ),
            models.CheckConstraint(
                condition=Q(author__isnull=False, person="") | Q(author=None) & ~Q(person=""),
                name="memory_has_one_author",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_scope_display()} {self.id}"

    @property
    def written_by(self) -> str:
        """The address of the agent, or the name of the person, that wrote it."""
        author = self.author
        if author is None:
            return self.person
        return f"{author.group.slug}.{author.name}" if author.group else author.handle

    @property
    def is_current(self) -> bool:
        """Whether agents read it: it is neither a withdrawal nor replaced."""
        return bool(self.text) and not Memory.objects.filter(replaces=self).exists()


class MemoryFile(models.Model):
    """What was last written to, or taken in from, the file of a memory."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    path = models.CharField(max_length=400)
    text = models.TextField()
    edited = models.BooleanField(default=False)
    last_entry = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organisation", "path"], name="memory_file_once")
        ]

    def __str__(self) -> str:
        return self.path


class Artifact(models.Model):
    """A file that an agent saved under a name, in the group that it was in; saving it again makes
    another version. The row is the truth and never changes; `filed_at` says its file is there, or
    that of a later version.
    """

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    group = models.ForeignKey(Group, models.PROTECT, null=True, related_name="+", db_index=False)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    path = models.CharField(max_length=400)
    description = models.CharField(max_length=500, blank=True)
    content = models.TextField()
    sha256 = models.CharField(max_length=64)
    frame_ref = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField()
    filed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="artifact_newest"),
            models.Index(fields=["organisation", "path", "-version"], name="artifact_path"),
            models.Index(fields=["group"], condition=Q(group__isnull=False), name="artifact_group"),
            models.Index(
                fields=["created_at"], condition=Q(filed_at=None), name="artifact_unfiled"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["agent", "name", "version"], name="artifact_once"),
            models.CheckConstraint(
                condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="artifact_digest_form"
            ),
        ]

    def __str__(self) -> str:
        return self.path


class KeptFile(models.Model):
    """The content of a file at the moment it was attached to a mail. Never changes."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organisation", "sha256"], name="kept_file_once"),
            models.CheckConstraint(
                condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="kept_file_digest_form"
            ),
        ]

    def __str__(self) -> str:
        return self.sha256
