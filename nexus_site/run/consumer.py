"""Celery's consumer, which no message ends: they only wake the worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from typing import Any

import structlog
from celery.worker import consumer
from kombu.transport import redis
from redis.exceptions import RedisError

PAUSE = 1.0  # seconds after a connection that failed
REMOVE = "remove these keys, or name in REDIS_URL a database of Redis that only NEXUS uses"

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

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Say what a person has to remove, where that is why; and do not try without a pause."""
        if "WRONGTYPE" in str(exc):
            with suppress(OSError, RedisError):  # the broker may have ended meanwhile
                log.warning("broker_keys_of_another_type", keys=self._foreign_keys(), do=REMOVE)
        time.sleep(PAUSE)
        super().on_connection_error_after_connected(exc)

    def _foreign_keys(self) -> list[str]:
        """The keys of the queue that hold something else: another program uses this database."""
        channel = self.connection.default_channel
        queue = self.app.conf.task_default_queue
        names = [channel._q_for_pri(queue, step) for step in channel.priority_steps]  # noqa: SLF001
        kinds = dict.fromkeys(names, b"list")
        kinds |= {channel.unacked_key: b"hash", channel.unacked_index_key: b"zset"}
        return [
            key for key, kind in kinds.items() if channel.client.type(key) not in {kind, b"none"}
        ]

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
