"""Bar charts of figures over time, in the language of the page. The template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tasks.insight.figures import Figure

WIDE, TALL = 1000, 100
"""The chart's own units; it is stretched to the room on the page."""
FILLED = 0.74
"""The part of its stretch of time that a bar, or a group of bars, takes."""
UNITS = (
    (_("%(count)s d"), 86_400),
    (_("%(count)s h"), 3600),
    (_("%(count)s min"), 60),
    (_("%(count)s s"), 1),
)
"""Units of time with their seconds."""
LEAST = 2
"""The height of a bar for zero or nearly zero, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One bar: place and size in the chart's units, a class of the style sheet, its text."""

    x: float
    y: float
    width: float
    height: float
    look: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart ready for a template. `target` is the height of the target's line, if any."""

    bars: tuple[ChartBar, ...]
    top: str
    target: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Series:
    """Counts of one thing, a number for each stretch; `look` is a class of the style sheet."""

    name: str
    look: str
    counts: Sequence[int]


Value = tuple[float, str, str]
"""A bar's value, look and text."""


def rate_chart(whens: Sequence[str], figures: Sequence[Figure]) -> Chart:
    """One bar for each stretch of one measure, good or bad by its target."""
    texts = [f"{when}: {_text(figure)}" for when, figure in zip(whens, figures, strict=True)]
    values = [figure.value for figure in figures]
    measure = figures[0].measure
    percent = figures[0].whole is not None
    if percent and measure.more_is_better:
        top = 100.0
    else:
        least = 2 * measure.target if percent else max(measure.target, 1.0)
        top = nice(max([least, *(v for v in values if v)]), most=100 if percent else float("inf"))
    looks = {None: "tc-none", True: "tc-good", False: "tc-bad"}
    bars = [(value or 0.0, looks[figure.reached], text)
            for value, figure, text in zip(values, figures, texts, strict=True)]  # fmt: skip
    return Chart(
        bars=_bars([[bar] for bar in bars], top),
        top=f"{top:g} %" if percent else f"{top:g}",
        target=round(TALL - TALL * measure.target / top, 2) if measure.target else None,
        words="; ".join(text for value, text in zip(values, texts, strict=True) if value),
    )


def _text(figure: Figure) -> str:
    if figure.whole is None:
        return str(figure.part)
    if figure.value is None:
        return gettext("nothing to measure")
    return gettext("%(percent)s %% (%(part)s of %(whole)s)") % {
        "percent": f"{figure.value:.1f}",
        "part": figure.part,
        "whole": figure.whole,
    }


def count_chart(whens: Sequence[str], series: Sequence[Series]) -> Chart:
    """Bars side by side in each stretch, one for each series; none for zero."""
    top = nice(max([1, *(count for one in series for count in one.counts)]))
    groups: list[list[Value | None]] = [
        [
            (one.counts[place], one.look, f"{when}: {_counted(one.counts[place], one.name)}")
            if one.counts[place]
            else None
            for one in series
        ]
        for place, when in enumerate(whens)
    ]
    sums = ", ".join(_counted(sum(one.counts), one.name) for one in series)
    return Chart(bars=_bars(groups, top), top=f"{top:g}", target=None, words=sums)


def _counted(count: int, name: str) -> str:
    return gettext("%(count)s %(name)s") % {"count": count, "name": name}


def _bars(groups: Sequence[Sequence[Value | None]], top: float) -> tuple[ChartBar, ...]:
    """The bars of each group side by side; the groups share the chart's width."""
    slot = WIDE / max(1, len(groups))
    bars = []
    for place, group in enumerate(groups):
        wide = slot * FILLED / len(group) if group else 0
        for nth, one in enumerate(group):
            if one is not None:
                value, look, text = one
                tall = round(max(LEAST, TALL * value / top), 2)
                x = place * slot + slot * (1 - FILLED) / 2 + nth * wide
                y = round(TALL - tall, 2)
                bars.append(ChartBar(round(x, 2), y, round(wide * 0.94, 2), tall, look, text))
    return tuple(bars)


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
        return str(_("%(count)s s")) % {"count": f"{seconds:.1f}"}
    left, parts = round(seconds), list[str]()
    for name, size in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(str(name) % {"count": count})
        if parts and (len(parts) == 2 or not count):
            break
    return " ".join(parts)
