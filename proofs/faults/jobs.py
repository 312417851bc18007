"""`python -m proofs.faults.jobs SECONDS [twin]`: kills jobs before and after each statement.

The twin is the job of deadlines that does its work in pieces, in no transaction. Prints how often
each job was killed.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import django

from nexus_site.run.fork import fork, status_of

NAMES = (
    *("escalations", "deadlines", "leases", "notices", "files", "frames", "approvals"),
    *("ledger seals", "idempotency", "deployments", "repositories", "charts"),
    *("git garbage", "web use"),
)


def run_and_die(name: str, moment: int) -> None:
    """Run a job until this moment: 1 is before its first statement, 2 after it."""
    from django.db import connection

    from toolbox.scheduler import run_job

    statements = 0

    def count(execute, *statement):
        nonlocal statements
        statements += 1
        if moment == 2 * statements - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        result = execute(*statement)
        if moment == 2 * statements:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    with connection.execute_wrapper(count):
        run_job(name)


def in_pieces() -> None:
    """The twin: what is due is handled statement by statement."""
    from contracts import deadlines
    from core import database

    def sweep(due, act, *, of):
        for row in due:
            act(row)
        return 0

    database.in_transaction = lambda: True
    deadlines.sweep = sweep


def kill_each(names: Sequence[str], seconds: float) -> dict[str, int]:
    """Kill the jobs in turn, each one moment later than before, until all came to their end."""
    killed, moments = dict.fromkeys(names, 0), dict.fromkeys(names, 1)
    ends = time.monotonic() + seconds
    while moments and time.monotonic() < ends:
        for name, moment in list(moments.items()):
            status = status_of(fork(partial(run_and_die, name, moment)), wait=True)
            if status == 0:
                del moments[name]
                continue
            if status != -signal.SIGKILL:
                raise SystemExit(f"the job {name} failed")
            killed[name] += 1
            moments[name] += 1
    return killed


def main(seconds: str, twin: str = "") -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "nexus_site.settings"
    django.setup()
    from mailroom.outgoing import outbox
    from workspace.git import garbage

    outbox.CLAIMED_FOR = garbage.AGAIN = timedelta(seconds=2)
    if twin:
        in_pieces()
    print(json.dumps(kill_each(["deadlines"] if twin else NAMES, float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
