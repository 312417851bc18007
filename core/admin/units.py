"""Lengths of time and sizes as people read them."""

from __future__ import annotations

from django.utils.translation import ngettext

SHORT = 10
"""Seconds below which tenths are worth saying."""


def duration(seconds: int) -> str:
    """Seconds as days, hours, minutes and seconds, without those that are none."""
    return " ".join(filter(None, _parts(seconds))) or "–"


def rough_duration(seconds: float) -> str:
    """A measured time in its largest unit and the next; a short one to a tenth of a second."""
    if seconds < SHORT:
        return ngettext("%(n)s second", "%(n)s seconds", 2) % {"n": f"{seconds:.1f}"}
    parts = _parts(round(seconds))
    largest = next(place for place, part in enumerate(parts) if part)
    return " ".join(filter(None, parts[largest : largest + 2]))


def _parts(seconds: int) -> list[str]:
    """Days, hours, minutes and seconds in words; '' for one that is none."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return [
        ngettext("%(n)s day", "%(n)s days", days) % {"n": days} if days else "",
        ngettext("%(n)s hour", "%(n)s hours", hours) % {"n": hours} if hours else "",
        ngettext("%(n)s minute", "%(n)s minutes", minutes) % {"n": minutes} if minutes else "",
        ngettext("%(n)s second", "%(n)s seconds", rest) % {"n": rest} if rest else "",
    ]


UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3))


def size(count: int) -> str:
    """Bytes in the largest unit, in powers of ten as the limits are set."""
    for unit, factor in UNITS:
        if count >= factor:
            return f"{count / factor:,.1f}".removesuffix(".0") + f" {unit}"
    return ngettext("%(n)s byte", "%(n)s bytes", count) % {"n": count}
