"""The measures and their figures (Spec: tasks 48): definition, target, part and whole; pure."""

from __future__ import annotations

from dataclasses import dataclass, fields

from core.language import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its target (Spec: tasks 48), in percent or as a count."""

    name: str
    title: str
    definition: str
    target: float
    more_is_better: bool = False


ROLE_MATCH = Measure(
    "role_match",
    _("Role match"),
    _("tasks claimed by a role that they require, or that require none, of all tasks claimed"),
    95,
    more_is_better=True,
)
CONFLICTS = Measure(
    "conflict_rate",
    _("Version conflicts"),
    _("updates whose expected version was stale, of all updates that agents tried"),
    5,
)
ACROSS_ROLES = Measure(
    "cross_role_claims",
    _("Cross-role claims"),
    _("tasks claimed by another role than they require, of all tasks claimed"),
    5,
)
INVALID_TRANSITIONS = Measure(
    "invalid_transitions",
    _("Invalid transitions"),
    _("attempts at a transition that the state matrix does not allow"),
    0,
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure over a period: `part` of `whole`; no whole for a count."""

    measure: Measure
    part: int
    whole: int | None = None

    @property
    def value(self) -> float | None:
        """Percent of the whole, or the count; None where there was nothing to measure."""
        if self.whole is None:
            return float(self.part)
        return 100 * self.part / self.whole if self.whole else None

    @property
    def target(self) -> str:
        """The target as people read it."""
        if self.whole is None:
            return f"{self.measure.target:g}"
        return f"{'>' if self.measure.more_is_better else '<'} {self.measure.target:g} %"

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None where there was nothing to measure."""
        value, target = self.value, self.measure.target
        if value is None:
            return None
        if self.measure.more_is_better:
            return value > target
        return value < target or value == target == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was counted in one stretch of time.

    `refused` and `passed` are stale versions that were refused, and that `warn` let pass.
    """

    claimed: int = 0
    across: int = 0
    updates: int = 0
    refused: int = 0
    passed: int = 0
    invalid: int = 0
    created: int = 0
    started: int = 0
    completed: int = 0

    def __add__(self, other: Counts) -> Counts:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Counts(**both)

    @property
    def conflicts(self) -> int:
        """Updates whose expected version was stale."""
        return self.refused + self.passed

    @property
    def tried(self) -> int:
        """All updates that were tried: those that passed, and those that were refused so."""
        return self.updates + self.refused


def figures_of(counts: Counts) -> list[Figure]:
    """The four figures of what was counted (Spec: tasks 48)."""
    return [
        Figure(ROLE_MATCH, counts.claimed - counts.across, counts.claimed),
        Figure(CONFLICTS, counts.conflicts, counts.tried),
        Figure(ACROSS_ROLES, counts.across, counts.claimed),
        Figure(INVALID_TRANSITIONS, counts.invalid),
    ]
