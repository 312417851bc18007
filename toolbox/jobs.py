"""Celery's face of the clocks: one job that looks at one clock."""

import threading
from collections import defaultdict

from celery import shared_task

from toolbox import scheduler

LOOKING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Held while this process looks at a clock."""


@shared_task(name="toolbox.tick", ignore_result=True)  # type: ignore[untyped-decorator]
def tick(name: str) -> int:
    """Handle what is due on a clock; a doubled or late message does no harm, and costs one look.

    One thread of a process looks at one clock: a slow one, such as notices to a receiver that takes
    its time, would soon hold every thread, and no other clock would be looked at.
    """
    if not LOOKING[name].acquire(blocking=False):
        return 0
    try:
        return (
            0
            if scheduler.just_looked_at(name, now=scheduler.database_now())
            else scheduler.tick(name)
        )
    finally:
        LOOKING[name].release()
