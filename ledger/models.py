"""The ledger's two tables. Both only ever grow: triggers refuse update, delete and truncate."""

from datetime import UTC, datetime

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Length
from django.db.models.lookups import Exact
from django.utils.translation import gettext

from core.admin.happened import sentence_of

XID = RawSQL("pg_current_xact_id()::text::bigint", ())
ERA = RawSQL("(pg_control_system()).system_identifier", ())
IN_CALENDAR = models.Q(
    at__range=(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
"""PostgreSQL also keeps times that Python cannot read, and what only grows would keep them."""


class Event(models.Model):
    """One event as it is stored; written by `ledger.sql.insert`, never through this class.

    `xid` is the transaction that wrote it and `era` the database cluster whose numbering that is: a
    restored dump goes on in another cluster, whose transactions count from the beginning.
    """

    class Decision(models.TextChoices):
        """How the gate ended; the same values as `core.events.EventOutcome`."""

        ALLOW = "allow", "allowed"
        DENY = "deny", "denied"

    seq = models.BigAutoField(primary_key=True)
    id = models.UUIDField(editable=False)
    at = models.DateTimeField()
    organisation_id = models.BigIntegerField(null=True, blank=True)
    actor = models.CharField(max_length=255, db_collation="C")
    action = models.CharField(max_length=255)
    decision = models.CharField(max_length=5, choices=Decision.choices)
    code = models.CharField(max_length=255, blank=True, db_default="")
    reason = models.TextField(blank=True, db_default="")
    tool = models.CharField(max_length=255, blank=True, db_default="")
    subject = models.CharField(max_length=255, blank=True, db_default="", db_collation="C")
    policy_version = models.BigIntegerField(null=True, blank=True)
    args_digest = models.CharField(max_length=255, blank=True, db_default="")
    request_id = models.CharField(max_length=255, blank=True, db_default="", db_collation="C")
    session_id = models.CharField(max_length=255, blank=True, db_default="")
    for_agent_id = models.BigIntegerField(null=True, blank=True)
    kind = models.CharField(max_length=255, blank=True, db_default="")
    details = models.JSONField(blank=True, db_default={})
    xid = models.BigIntegerField(db_default=XID, editable=False)
    era = models.BigIntegerField(db_default=ERA, editable=False)
    digest = models.BinaryField(max_length=32)

    class Meta:
        ordering = ["-seq"]
        indexes = [
            models.Index(fields=["organisation_id", "seq"], name="ledger_event_organisation"),
            models.Index(fields=["era", "xid", "seq"], name="ledger_event_sealing"),
            models.Index(
                fields=["for_agent_id", "era", "xid", "seq"],
                name="ledger_event_stream",
                condition=models.Q(for_agent_id__isnull=False),
            ),
            models.Index(
                fields=["subject", "seq"],
                name="ledger_event_subject",
                condition=~models.Q(subject=""),
            ),
            models.Index(
                fields=["organisation_id", "-seq"],
                name="ledger_event_policy",
                condition=models.Q(details__has_key="policy_version"),
            ),
            models.Index(
                "organisation_id",
                KeyTransform("path", "details"),
                "seq",
                name="ledger_event_file",
                condition=models.Q(action="file.written"),
            ),
            BrinIndex(fields=["at"], name="ledger_event_time", autosummarize=True),
        ]
        constraints = [
            models.CheckConstraint(
                name="ledger_event_decision_known",
                condition=models.Q(decision__in=["allow", "deny"]),
            ),
            models.CheckConstraint(
                name="ledger_event_denial_has_code",
                condition=models.Q(decision="allow") | ~models.Q(code=""),
            ),
            models.CheckConstraint(
                name="ledger_event_names_its_actor",
                condition=~models.Q(actor="") & ~models.Q(action=""),
            ),
            models.CheckConstraint(
                name="ledger_event_in_a_transaction", condition=models.Q(xid__gt=0)
            ),
            models.CheckConstraint(
                name="ledger_event_digest_is_sha256",
                condition=Exact(Length("digest"), 32),
            ),
            models.CheckConstraint(name="ledger_event_in_the_calendar", condition=IN_CALENDAR),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {sentence_of(self.action)}"


class Seal(models.Model):
    """A signed Merkle root over the events of an era's transactions `lo <= xid < hi`.

    `marks` holds 16 bytes for each leaf (sequence number, start of its hash), so that verification
    can say which event was changed, not only that some event was.
    """

    number = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    era = models.BigIntegerField()
    lo = models.BigIntegerField()
    hi = models.BigIntegerField()
    count = models.BigIntegerField()
    root = models.BinaryField()
    marks = models.BinaryField()
    previous = models.BinaryField()
    key_id = models.CharField(max_length=64)
    digest = models.BinaryField()
    signature = models.BinaryField()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["era", "lo"], name="ledger_seal_range_once"),
            models.CheckConstraint(
                name="ledger_seal_range_forward",
                condition=models.Q(lo__lt=models.F("hi")) & models.Q(count__gt=0),
            ),
            models.CheckConstraint(name="ledger_seal_in_the_calendar", condition=IN_CALENDAR),
        ]

    def __str__(self) -> str:
        return gettext("Seal %(number)s") % {"number": self.number}
