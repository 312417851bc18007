"""A measure's figures over time as a chart, good or bad by its target."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext

from core.admin.charts import Chart, ChartBar, height, nice
from tasks.insight.figures import Figure

LOOKS = {None: "tc-none", True: "tc-good", False: "tc-bad"}


def rate_chart(whens: Sequence[str], figures: Sequence[Figure]) -> Chart:
    """One bar for each stretch of one measure."""
    texts = [f"{when}: {_text(figure)}" for when, figure in zip(whens, figures, strict=True)]
    values = [figure.value or 0.0 for figure in figures]
    measure = figures[0].measure
    percent = figures[0].whole is not None
    if percent and measure.more_is_better:
        top = 100.0
    else:
        least = 2 * measure.target if percent else max(measure.target, 1.0)
        top = nice(max([least, *values]), most=100 if percent else float("inf"))
    bars = [
        ChartBar(height(value, top), LOOKS[figure.reached], text)
        for value, figure, text in zip(values, figures, texts, strict=True)
    ]
    return Chart(
        stretches=[[bar] for bar in bars],
        top=f"{top:g} %" if percent else f"{top:g}",
        words="; ".join(text for value, text in zip(values, texts, strict=True) if value),
        target=round(100 * measure.target / top, 2) if measure.target else None,
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
