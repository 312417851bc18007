"""Sentences about a case for people: why it waits, what comes next, which round it is."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.labels import Text
from governance.cases.facts import FINAL, CaseFacts, Position
from governance.cases.vocabulary import MEANINGS, OFFICE_OF, SIGNALS, Outcome, Signal, Stage, State

MEANING: Mapping[Signal, Text] = {
    Signal.NON_VERIFIABLE: _("the Analyst found no way to verify the result"),
    Signal.UNVERIFIABLE_TASK: _("a task does not say how it is verified"),
    Signal.UNAUTHORISED_CHANGE: _(
        "the IMPLEMENTATION changes a file that its office may not change"
    ),
    Signal.REJECTED: _("the Reviewer rejected the IMPLEMENTATION"),
    Signal.TEST_FAILED: _("the Tester showed that a task is not fulfilled"),
    Signal.EVIDENCE_UNAVAILABLE: _("the Tester could not get evidence"),
    Signal.ITERATION_OVERFLOW: _("the last round that this case may have has failed"),
    Signal.STRUCTURAL_VIOLATION: _("an agent acted outside its office"),
}
"""What each failure signal says to a person (Spec: constitution 9)."""


def case_words(code: str) -> SafeString | str:
    """What people read for a failure signal or a fault, with the code in small print."""
    if code not in MEANINGS:
        return code
    return format_html('{} <code class="nx-code">{}</code>', gettext(MEANINGS[code]), code)


def next_step(at: Position) -> str:
    """What happens next in a case at this position."""
    match at.state:
        case State.DELIVERED:
            return gettext("The case is delivered.")
        case State.STOPPED:
            return gettext("The case is stopped. It cannot be opened again.")
        case State.PAUSED:
            reason = MEANING[at.paused_by] if at.paused_by else gettext("it is paused")
            return gettext("The case waits for a person: %(reason)s.") % {"reason": reason}
        case State.OPEN if at.stage is Stage.VERDICT and at.failed_by:
            return gettext("The round failed. The CONDUCTOR decides whether another one follows.")
        case State.OPEN if at.stage is Stage.VERDICT:
            return gettext("The CONDUCTOR decides whether the case is delivered.")
        case State.OPEN:
            office = OFFICE_OF[at.stage].capitalize()
            return gettext("%(stage)s is next, by the %(office)s.") % {
                "stage": at.stage,
                "office": office,
            }


def vacant_step(at: Position) -> str:
    """What an open case waits for whose turn no agent can take."""
    office = OFFICE_OF[at.stage].capitalize()
    return gettext(
        "%(stage)s is next, but no agent can do it: it needs an active agent of the %(office)s "
        "that acted in no other office of this case."
    ) % {"stage": at.stage, "office": office}


def round_shown(at: Position) -> str:
    """The round as people count it: a failed one until the next begins (Spec: constitution 12)."""
    failed = at.failed_by is not None and SIGNALS[at.failed_by].new_round
    shown = (
        gettext("%(round)s of %(most)s (failed)") if failed else gettext("%(round)s of %(most)s")
    )
    return shown % {"round": at.ruled_round, "most": at.max_rounds}


def stages_of(case: CaseFacts) -> list[tuple[str, str]]:
    """Each stage with "done", "failed", "now" or "", for the line of stages above a case."""
    record, state = case.record, case.at.state
    reached = dict.fromkeys(record.in_force, "done")
    if record.review is Outcome.REJECTED:
        reached[Stage.REVIEW] = "failed"
    if record.test not in (None, Outcome.PASSED):
        reached[Stage.TEST] = "failed"
    if case.at.failed_by is Signal.NON_VERIFIABLE:
        reached[Stage.ANALYSIS] = "failed"
    if state not in FINAL:
        reached[case.at.stage] = "now"
    elif state is State.DELIVERED:
        reached[Stage.VERDICT] = "done"
    return [(stage.value, reached.get(stage, "")) for stage in Stage]
