"""Celery's consumer, which no message ends: they only wake the worker."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty
from typing import Any

import structlog
from celery.worker import consumer
from kombu.transport import redis
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)


class SteadyChannel(redis.Channel):
    """Drops a message that has no envelope, which never comes to the consumer."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (Empty, OSError, RedisError):  # nothing came, or nothing can come
            raise
        except Exception:
            log.warning("message_dropped", exc_info=True)
            return True


class SteadyTransport(redis.Transport):
    """Redis, read by such channels."""

    Channel = SteadyChannel


class SteadyConsumer(consumer.Consumer):
    """Drops a message that it cannot read, and goes on with the next.

    A worker that such a message ended would give it back to the broker, and be ended again by it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Where the broker answers an error: begin anew, as after a lost connection.
        self.connection_errors: tuple[type[Exception], ...] = (Exception,)

    def ensure_connected(self, conn: Any) -> Any:
        """Connect by the transport whose channels drop what they cannot read."""
        conn.transport_cls = SteadyTransport
        return super().ensure_connected(conn)

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
