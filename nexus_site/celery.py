"""The worker: it only wakes the rooms' jobs; what is due lies in the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
app = Celery("nexus")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="jobs")


@app.on_after_finalize.connect  # type: ignore[untyped-decorator]
def schedule_clocks(sender: Celery, **_: object) -> None:
    """Let beat look at every clock as often as it asks.

    A message has no end: it would be told by two machines' clocks, and where one is an hour off no
    message would ever be taken. Those that piled up are cheap (toolbox.jobs).
    """
    from toolbox.scheduler import CLOCKS

    for clock in CLOCKS.values():
        sender.add_periodic_task(
            clock.every,
            sender.signature("toolbox.tick", args=[clock.name]),
            name=clock.name,
        )
