"""The door's own clocks: kept answers that expire, seals, frames whose time is over."""

from datetime import datetime

from ledger.sealing import seal_events
from toolbox.frames.services import fail_due
from toolbox.models import IdempotencyRecord
from toolbox.scheduler import clock


@clock("idempotency", every=300)
def forget_answers(now: datetime) -> int:
    """Forget answers that were kept for their 24 hours."""
    return IdempotencyRecord.objects.filter(due_at__lte=now).delete()[0]


@clock("ledger seals", every=5)
def seal(now: datetime) -> int:
    """Seal every event that has surely committed."""
    return seal_events(now=now)


@clock("frames", every=5)
def fail_frames(now: datetime) -> int:
    """Return a failure for every frame whose time is over."""
    return fail_due(now)
