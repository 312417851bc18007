"""Bars for figures over time: where each stands and what it says; pure. The template draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDE, TALL = 1000, 100
"""The drawing's own units; it is stretched to whatever room there is."""
FILLED = 0.74
"""How much of its stretch of time a bar, or a group of bars, takes."""
LEAST = 2
"""The height of a bar for a value that is none or nearly none, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: place and size in the drawing's units, a class of the style sheet, its words."""

    x: float
    y: float
    width: float
    height: float
    look: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing ready for a template. `target` is the height of the target's line, if any."""

    bars: tuple[Bar, ...]
    top: str
    target: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole in one stretch of time; no whole where it is a mere count."""

    when: str
    part: int
    whole: int | None

    @property
    def value(self) -> float | None:
        """Percent of the whole, or the count; None where there was nothing to measure."""
        if self.whole is None:
            return float(self.part)
        return 100 * self.part / self.whole if self.whole else None

    @property
    def words(self) -> str:
        """What a person reads of it."""
        if self.whole is None:
            return f"{self.when}: {self.part}"
        if self.value is None:
            return f"{self.when}: nothing to measure"
        return f"{self.when}: {self.value:.1f} % ({self.part} of {self.whole})"


def rate_chart(shares: Sequence[Share], *, target: float, more_is_better: bool) -> Chart:
    """One bar for each stretch, good or bad by the target, none where nothing was measured."""
    values = [share.value for share in shares]
    known = [value for value in values if value is not None]
    percent = any(share.whole is not None for share in shares)
    if percent:
        top = 100.0 if more_is_better else nice(max([2 * target, *known]), most=100)
    else:
        top = nice(max([target, 1.0, *known]))
    slot = WIDE / max(1, len(shares))
    bars = []
    for place, (share, value) in enumerate(zip(shares, values, strict=True)):
        if value is None:
            look = "tc-none"
        else:
            met = value > target if more_is_better else value < target or value == target == 0
            look = "tc-good" if met else "tc-bad"
        left = place * slot + slot * (1 - FILLED) / 2
        bars.append(_bar(left, slot * FILLED, value or 0, top, look, share.words))
    return Chart(
        bars=tuple(bars),
        top=f"{top:g} %" if percent else f"{top:g}",
        target=_height(target, top) if target else None,
        words="; ".join(share.words for share in shares if share.value),
    )


@dataclass(frozen=True, slots=True)
class Series:
    """Counts of one thing, a number for each stretch; `look` is a class of the style sheet."""

    name: str
    look: str
    counts: Sequence[int]


def count_chart(whens: Sequence[str], series: Sequence[Series]) -> Chart:
    """Bars side by side in each stretch, one for each series."""
    top = nice(max([1, *(count for one in series for count in one.counts)]))
    slot = WIDE / max(1, len(whens))
    wide = slot * FILLED / max(1, len(series))
    bars = [
        _bar(
            place * slot + slot * (1 - FILLED) / 2 + nth * wide,
            wide * 0.94,
            one.counts[place],
            top,
            one.look,
            f"{when}: {one.counts[place]} {one.name}",
        )
        for place, when in enumerate(whens)
        for nth, one in enumerate(series)
        if one.counts[place]
    ]
    sums = ", ".join(f"{sum(one.counts)} {one.name}" for one in series)
    return Chart(bars=tuple(bars), top=f"{top:g}", target=None, words=sums)


def _bar(x: float, wide: float, value: float, top: float, look: str, words: str) -> Bar:
    tall = max(LEAST, TALL * value / top)
    return Bar(round(x, 2), round(TALL - tall, 2), round(wide, 2), round(tall, 2), look, words)


def _height(value: float, top: float) -> float:
    return round(TALL - TALL * value / top, 2)


def nice(value: float, most: float = float("inf")) -> float:
    """The smallest of 1, 2, 3, 5, 10, 20, … that is not below the value, and not above `most`."""
    step = 1.0
    while True:
        for factor in (1, 2, 3, 5):
            if step * factor >= value or step * factor >= most:
                return min(step * factor, most)
        step *= 10


def spelled(seconds: float) -> str:
    """A duration as people say it: its two largest units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    left, parts = round(seconds), list[str]()
    for name, size in units:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
        if parts and (len(parts) == 2 or not count):
            break
    return " ".join(parts)
