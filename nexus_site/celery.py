"""The Celery app: starts the scheduled jobs; what is due is in the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
app = Celery("nexus")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="celery_task")


@app.on_after_finalize.connect  # type: ignore[untyped-decorator]
def schedule_jobs(sender: Celery, **_: object) -> None:
    """Let beat send a message for every scheduled job, once per period or hour.

    Messages do not expire: sender and receiver would compare two machines' clocks, and with one an
    hour off no message would ever be taken. Duplicates are cheap (toolbox.celery_task).
    """
    from toolbox.scheduler import JOBS

    for job in JOBS.values():
        sender.add_periodic_task(
            job.sent_every,
            sender.signature("toolbox.run_job", args=[job.name]),
            name=job.name,
        )
