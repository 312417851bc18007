"""Kinds of parameters that contract tools share: names, texts, times, amounts, versions."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from toolbox.registry import Params

FIRST_YEAR, LAST_YEAR = 1970, 9000  # far enough from the calendar's ends to reckon with


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


def _as_number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(  # noqa: TRY004  pydantic answers with ValueErrors
            "write it as a number, such as 1500 or 1500.00"
        )
    return str(value)


Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
Body = Annotated[str, StringConstraints(max_length=10_000)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
EscalationId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=32)]
PriorityName = Literal["low", "medium", "high", "critical"]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)] | None
Moment = Annotated[
    AwareDatetime, Field(strict=False), BeforeValidator(_as_text), AfterValidator(_as_utc)
]
Amount = Annotated[
    Decimal,
    Field(strict=False, gt=0, max_digits=17, decimal_places=2),
    BeforeValidator(_as_number),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 999_999_999_999_999},
                {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,2})?$"},
            ],
            "description": "more than nothing, two decimals at most",
        }
    ),
]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class Grant(Params):
    """A channel that a contract opens between two agents while it is open."""

    sender: Name = Field(alias="from", description="who may write")
    recipient: Name = Field(alias="to", description="to whom")
    types: list[Name] | None = Field(
        None, max_length=20, description="mail types; left out: all that the channel can carry"
    )
