"""How fast the ledger is verified: a long one is written and sealed with keys of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from django.db import connection, transaction
from django.test.utils import override_settings
from django.utils import timezone

from core.actions import Action
from core.events import Event
from lab.bench.contest import Figure
from lab.bench.report import Report
from ledger import keys
from ledger.sealer import seal_events
from ledger.services import insert_events
from ledger.verification import verify_ledger

FORGET = """
ALTER TABLE ledger_event DISABLE TRIGGER USER;
TRUNCATE ledger_event;
ALTER TABLE ledger_event ENABLE TRIGGER USER
"""
"""Views written by hand give their events no digest, so the ledger begins again."""
TIMES = 3
AT_ONCE = 2000  # events of one transaction


def rows(report: Report, organisation_id: int, *, count: int) -> None:
    """Write events as sent mails do, seal all there are, and verify them several times."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
    for first in range(0, count, AT_ONCE):
        last = min(first + AT_ONCE, count)
        with transaction.atomic():
            insert_events(_sent(number, organisation_id, now) for number in range(first, last))
    with _own_keys():
        while seal_events(now=timezone.now()):
            pass
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE ledger_event")
        rates = [_events_per_second() for _ in range(TIMES)]
    report.contest(1, {"events verified in a second": Figure(rates=rates)})


@contextmanager
def _own_keys() -> Iterator[None]:
    """Seal with a new key, and leave what this machine remembers of its own ledger alone."""
    with (
        TemporaryDirectory() as folder,
        override_settings(LEDGER_DIR=Path(folder), LEDGER_SIGNING_KEY="", LEDGER_TRUSTED_KEYS=()),
    ):
        yield


def _sent(number: int, organisation_id: int, now: datetime) -> Event:
    sender = f"backend_worker_{number % 40}"
    return Event(
        action=Action.MAIL_DELIVERED,
        actor=f"agent:{sender}",
        at=now,
        organisation_id=organisation_id,
        tool="send_mail",
        subject=f"mail:MAIL-20260101000000{number:06d}-bnch",
        policy_version=1,
        args_digest=f"{number:064x}",
        request_id=uuid4().hex,
        session_id=str(uuid4()),
        kind="mail",
        details={"from": sender, "to": "it_manager", "type": "question"},
    )


def _events_per_second() -> float:
    begun = time.perf_counter()
    found = verify_ledger(trusted=keys.trusted(), now=timezone.now())
    took = time.perf_counter() - begun
    if found.finding is not None or found.unsealed:
        raise RuntimeError(f"the ledger of the benchmark is not whole: {found}")
    return found.events / took
