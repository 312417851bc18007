"""Parameter and result types that the tools of every room share."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    with_config,
)
from pydantic_core import ErrorDetails

from core.blank import is_blank
from core.limits import BIGGEST_VERSION, MAX_AMOUNT, MAX_MAIL_BODY, MAX_REASON, MAX_SUBJECT
from core.paging import DEFAULT_LIMIT, MAX_LIMIT

FIRST_YEAR, LAST_YEAR = 1970, 9000  # far enough from the calendar's ends to calculate with
AMOUNT_TEXT = r"[0-9]{1,15}(\.[0-9]{1,2})?"


def sentence_of(problem: ErrorDetails) -> str:
    """What pydantic says is wrong with a value, without its own words in front."""
    return problem["msg"].removeprefix("Value error, ")


class Params(BaseModel):
    """Base of every tool's parameters: unknown fields are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


wire_result = with_config(ConfigDict(extra="forbid"))
"""Decorator of the TypedDicts that tools return: the schema names every field, and no other."""


def _as_shown(value: str) -> str:
    if is_blank(value):
        raise ValueError("it is blank")
    return value


def _as_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(  # noqa: TRY004  pydantic answers with ValueErrors
            "write it as text, such as 2026-12-31T18:00:00Z"
        )
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("write it in ISO 8601, such as 2026-12-31T18:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _as_utc(value: datetime) -> datetime:
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValueError(f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}")
    return value.astimezone(UTC)


def _as_amount(value: object) -> object:
    """The value as Decimal reads it, if the JSON schema of Amount describes it."""
    if isinstance(value, str):
        fits = re.fullmatch(AMOUNT_TEXT, value) is not None
    else:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits:
        raise ValueError("write it as a number, such as 1500 or 1500.00")
    if isinstance(value, int | float) and value > MAX_AMOUNT:
        raise ValueError(f"must be at most {MAX_AMOUNT}")
    return str(value)


Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Handle = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
Title = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_SUBJECT, pattern=r"\S"),
    AfterValidator(_as_shown),
]
MailBody = Annotated[str, StringConstraints(max_length=MAX_MAIL_BODY)]
Reason = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_REASON, pattern=r"\S"),
    AfterValidator(_as_shown),
]
Description = Annotated[str, StringConstraints(max_length=500)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=32)]
RowId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]
Version = Annotated[int, Field(ge=1, le=BIGGEST_VERSION)]
PriorityName = Literal["low", "medium", "high", "critical"]
Moment = Annotated[
    AwareDatetime, Field(strict=False), BeforeValidator(_as_text), AfterValidator(_as_utc)
]
Amount = Annotated[
    Decimal,
    Field(strict=False, gt=0, max_digits=17, decimal_places=2),
    BeforeValidator(_as_amount),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_AMOUNT},
                {"type": "string", "pattern": f"^{AMOUNT_TEXT}$"},
            ],
            "description": "more than zero, two decimals at most",
        }
    ),
]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class Page(Params):
    """The page arguments of every list."""

    cursor: Cursor | None = None
    limit: Limit = DEFAULT_LIMIT
