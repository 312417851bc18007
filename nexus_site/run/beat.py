"""Beat, and its scheduler: sends each scheduled job at its period, by the machine's uptime."""

import heapq
import time
from typing import Any

import structlog
from celery.apps.beat import Beat
from celery.beat import ScheduleEntry, Scheduler, SchedulingError, event_t

log = structlog.get_logger(__name__)

SAME_FOR_ALL = 5
"""The priority that Celery gives to every entry."""


class EndingBeat(Beat):
    """Beat, which the signal itself ends.

    Celery would raise an exception from its handler, and where that met code that catches all of
    them, as in a connection to a broker that has just died, beat went on without end.
    """

    def install_sync_handler(self, service: object) -> None:
        """Leave the signal as it is: there is nothing to keep."""


class SteadyScheduler(Scheduler):
    """Sends every job once at the start, and then once per period.

    It goes by the machine's uptime: a wall clock that jumps an hour, either way, moves nothing. It
    keeps no file: what is due lies in the database, so a beat that was killed has nothing to
    remember, and two of them have nothing to fight over.
    """

    def _when(self, entry: ScheduleEntry, next_time_to_run: float, **_: Any) -> float:
        return time.monotonic() + (next_time_to_run or 0)

    def populate_heap(self, **_: Any) -> None:
        """Begin with every job."""
        entries = self.schedule.values()
        self._heap = [event_t(self._when(entry, 0), SAME_FOR_ALL, entry) for entry in entries]
        heapq.heapify(self._heap)

    def is_due(self, entry: ScheduleEntry) -> tuple[bool, float]:
        """Asked once the time is there; says in how many seconds it comes again."""
        return True, entry.schedule.run_every.total_seconds()

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send it. While the broker cannot be reached, one line says so, not a hundred."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as problem:
            log.warning("job_not_sent", job=entry.name, problem=str(problem))
