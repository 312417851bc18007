"""How NEXUS writes logs: one structured line for each event, on standard error."""

import logging.config
from typing import Any

import structlog

from core.key_form import without_keys
from core.terminal import printable_lines

SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def _for_terminal(_logger: Any, _method: str, line: str) -> str:
    """A line may quote what a stranger sent, and so may the traceback below it."""
    return printable_lines(without_keys(line))


def configure(*, level: str, as_json: bool) -> None:
    """Send structlog's and the standard library's lines through one renderer."""
    renderer = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.format_exc_info,
                        renderer,
                        _for_terminal,
                    ],
                    "foreign_pre_chain": SHARED,
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django_structlog": {"level": "ERROR"},  # it names requests; the lines are ours
                "django.request": {"level": "ERROR"},  # a refused call is an event, not a fault
                # Strangers' bad requests: foreign hosts, too many fields, forms without a token.
                "django.security": {"level": "CRITICAL"},
                "axes": {"level": "ERROR"},  # sign-ins are events, and of a flood some are
                "uvicorn.error": {"level": "ERROR"},
                "httpx": {"level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
