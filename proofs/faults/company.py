"""`python -m proofs.faults.company`: `manage.py up` with more beats and workers, and quick jobs.

What the product itself does not know lies here: `FAULTS_TWIN` names a file, and the twin that is
written in it stands in for its mechanism (twins.py).
"""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import django

from nexus_site.run.counts import count_in
from nexus_site.run.shim import end_with_parent

EVERY = 1.0  # seconds between two runs of a job that is about time
ABOUT_TIME = ("escalations", "deadlines", "leases", "notices", "files")
BEATS = 3
WORKERS = 2


def hurry() -> None:
    """Let jobs run each second, and let waits between attempts be short."""
    from documents import files
    from mailroom.outgoing import outbox
    from toolbox.scheduler import JOBS

    for name, job in JOBS.items():
        JOBS[name] = replace(job, every=EVERY if name in ABOUT_TIME else job.every)
    files.GRACE = timedelta(seconds=5)
    outbox.CLAIMED_FOR = timedelta(seconds=15)
    outbox.FIRST_WAIT = 0.2


def several() -> None:
    """More beats and workers than the one that `up` keeps, each kept as that one is."""
    from nexus_site.run import up, worker
    from nexus_site.run.supervisor import Child

    children = up.children

    def with_more(*args, **options):
        beats = [Child(name=f"beat {n}", run=worker.beat) for n in range(2, BEATS + 1)]
        workers = [Child(name=f"worker {n}", run=worker.work) for n in range(2, WORKERS + 1)]
        return [*children(*args, **options), *beats, *workers]

    up.children = with_more


def main() -> None:
    end_with_parent(int(os.environ["FAULTS_PARENT"]))
    metrics = Path(os.environ["NEXUS_VAR"]) / "metrics"
    metrics.mkdir(parents=True, exist_ok=True)
    count_in(metrics)
    os.environ["DJANGO_SETTINGS_MODULE"] = "nexus_site.settings"
    django.setup()
    hurry()
    several()
    if "FAULTS_TWIN" in os.environ:
        from proofs.faults import twins

        twins.stand_in(Path(os.environ["FAULTS_TWIN"]))
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", "up"])


if __name__ == "__main__":
    main()
