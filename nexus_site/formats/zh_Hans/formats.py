"""Times as the ledger writes them: one form, sortable by eye, always UTC."""

from nexus_site.formats.en.formats import (
    DATE_FORMAT,
    DATETIME_FORMAT,
    SHORT_DATE_FORMAT,
    SHORT_DATETIME_FORMAT,
    TIME_FORMAT,
)

NUMBER_GROUPING = 3  # not Django's four
THOUSAND_SEPARATOR = ","

__all__ = [
    "DATETIME_FORMAT",
    "DATE_FORMAT",
    "NUMBER_GROUPING",
    "SHORT_DATETIME_FORMAT",
    "SHORT_DATE_FORMAT",
    "THOUSAND_SEPARATOR",
    "TIME_FORMAT",
]
