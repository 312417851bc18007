"""Celery's consumer, which no message ends: they only wake the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from celery.worker import consumer

log = structlog.get_logger(__name__)


class SteadyConsumer(consumer.Consumer):
    """Drops a message that it cannot read, and goes on with the next.

    A worker that such a message ended would give it back to the broker, and be ended again by it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Where the transport itself cannot read it: begin anew, as after a lost connection.
        self.connection_errors: tuple[type[Exception], ...] = (Exception,)

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        """What handles each message that has an envelope."""
        handle = super().create_task_handler(*args, **kwargs)

        def handle_or_drop(message: Any) -> None:
            try:
                handle(message)
            except Exception:
                log.warning("message_dropped", exc_info=True)
                message.ack()

        return handle_or_drop
