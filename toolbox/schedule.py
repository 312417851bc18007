"""The toolbox's scheduled jobs: expired answers, ledger seals, frames that time out."""

from datetime import datetime

from core.database import in_last
from ledger.sealer import seal_events
from toolbox.frames.ending import end_due_frames
from toolbox.models import IdempotencyRecord, Usage
from toolbox.quotas.charging import DAY
from toolbox.quotas.written import sum_up_minutes
from toolbox.scheduler import delete_over, scheduled_job


@scheduled_job("idempotency", every=300)
def delete_expired_answers(now: datetime) -> int:
    """Delete answers, and counts of bytes, that were kept for 24 hours; add the newest counts.

    Bytes of a future from which the database's clock was set back count no more (Spec: settings 6).
    """
    delete_over(Usage.objects.exclude(in_last(DAY, "minute", now=now)))
    sum_up_minutes(now)
    return delete_over(IdempotencyRecord.objects.filter(due_at__lte=now))


scheduled_job("ledger seals", every=5)(seal_events)
scheduled_job("frames", every=5)(end_due_frames)
