"""The quotas themselves: what each counts, its limit, and who can help (Spec: settings 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.decision import Code, Denied, refuse
from orgchart.organisation_settings import quota_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One limit: what it counts, and who can help where it is used up."""

    what: str
    limit: int
    help: str

    def exceeded_by(self, used: int) -> Denied:
        """The refusal of a call that would go past it."""
        return refuse(
            Code.QUOTA_EXCEEDED,
            f"{self.what}: {used} of {self.limit} are used",
            self.help,
            rule="quota",
            what=self.what,
            used=used,
            limit=self.limit,
        )


def byte_quotas(values: Mapping[str, Any]) -> dict[str, Quota]:
    """The quotas of bytes under an organisation's settings."""
    return {
        "per_minute": Quota(
            what="bytes that an agent writes in a minute",
            limit=quota_of(values, "bytes_per_minute"),
            help="wait a minute, then call again",
        ),
        "per_day": Quota(
            what="bytes that an agent writes in a day",
            limit=quota_of(values, "bytes_per_day"),
            help=(
                "write less, or ask your superior; "
                "the Board and the people who run NEXUS set the limit"
            ),
        ),
        "organisation_per_day": Quota(
            what="bytes that an organisation writes in a day",
            limit=quota_of(values, "organisation_bytes_per_day"),
            help="ask your superior; the Board and the people who run NEXUS set the limit",
        ),
    }


def total_quotas(values: Mapping[str, Any]) -> tuple[Quota, Quota]:
    """The quotas of what an organisation stores in all, under its settings: bytes, rows."""
    help_ = (
        "tell your superior; the Board and the people who run NEXUS set the limit, "
        "and nothing is lost"
    )
    return (
        Quota(
            what="bytes that an organisation stores in all",
            limit=quota_of(values, "organisation_bytes"),
            help=help_,
        ),
        Quota(
            what="rows that an organisation stores in all",
            limit=quota_of(values, "organisation_rows"),
            help=help_,
        ),
    )
