"""Celery's face of the clocks: one job that looks at one clock."""

from celery import shared_task

from toolbox import clock


@shared_task(name="toolbox.tick", ignore_result=True)  # type: ignore[untyped-decorator]
def tick(name: str) -> int:
    """Handle what is due on a clock; a doubled or late message does no harm, and costs one look."""
    return 0 if clock.just_looked_at(name, now=clock.database_now()) else clock.tick(name)
