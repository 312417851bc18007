"""Rows of a case as the facts that its rules decide by: where it is, and which results stand."""

from __future__ import annotations

from collections.abc import Sequence

from governance.cases.facts import CaseFacts, CaseRecord, Position
from governance.cases.models import Artifact, Case, Violation
from governance.cases.officers import acted_in
from governance.cases.vocabulary import Outcome, Signal, Stage, State

AMENDED = (Stage.ANALYSIS, Stage.TASKS)
"""The stages whose result people amend, and that counts beyond its round."""


def position_of(row: Case) -> Position:
    """Where the row says that the case is."""
    return Position(
        state=State(row.state),
        stage=Stage(row.stage),
        round=row.round,
        max_rounds=row.max_rounds,
        failed_by=Signal(row.failed_by) if row.failed_by else None,
        paused_by=Signal(row.paused_by) if row.paused_by else None,
    )


def artifacts_of(row: Case) -> list[Artifact]:
    """Everything that was submitted, oldest first, without its content."""
    rows = Artifact.objects.filter(organisation_id=row.organisation_id, case_id=row.id)
    return list(rows.defer("content", "evidence").order_by("number"))


def facts_of(row: Case) -> CaseFacts:
    """The case as rules see it."""
    at = position_of(row)
    return CaseFacts(at, record_of(row, at, artifacts_of(row)))


def in_force(at: Position, artifacts: Sequence[Artifact]) -> dict[Stage, Artifact]:
    """The newest artifact of each stage whose result counts; see CaseRecord."""
    found: dict[Stage, Artifact] = {}
    for each in artifacts:
        stage = Stage(each.stage)
        if stage in AMENDED or each.round == at.ruled_round:
            found[stage] = each
    analysis, tasks = found.get(Stage.ANALYSIS), found.get(Stage.TASKS)
    if analysis and tasks and tasks.number < analysis.number:
        del found[Stage.TASKS]
    return found


def record_of(row: Case, at: Position, artifacts: Sequence[Artifact]) -> CaseRecord:
    """What was submitted, as decisions need it."""
    standing = in_force(at, artifacts)
    review = standing.get(Stage.REVIEW)
    implementation = standing.get(Stage.IMPLEMENTATION)
    amended = implementation is not None and any(
        each.number > implementation.number for each in artifacts if each.stage in AMENDED
    )
    judged = [standing.get(stage) for stage in (Stage.TASKS, Stage.IMPLEMENTATION)]
    return CaseRecord(
        in_force=frozenset(standing),
        authors=frozenset(
            (stage, author) for stage, author in _authors(at, artifacts) if stage in standing
        ),
        acted=acted_in(row.id, row.organisation_id),
        review=Outcome(review.outcome) if review else None,
        test=Outcome(standing[Stage.TEST].outcome) if Stage.TEST in standing else None,
        must_reject=frozenset(
            Signal(name) for each in judged if each is not None for name in each.signals
        ),
        submitted=frozenset(Stage(each.stage) for each in artifacts),
        amended=amended,
        amendments=sum(each.revision > 0 and each.stage in AMENDED for each in artifacts),
        overruled=review is not None and review.revision > 0,
        turned_down=bool(artifacts) and _turns_down(artifacts[-1]),
        violated=at.state is State.PAUSED and _is_violated(row),
    )


def _turns_down(newest: Artifact) -> bool:
    is_overruling = newest.stage == Stage.REVIEW and newest.revision > 0
    return is_overruling and newest.outcome == Outcome.REJECTED


def _is_violated(row: Case) -> bool:
    """Whether a violation of this round found nothing to abort (Spec: constitution 38)."""
    rows = Violation.objects.filter(organisation_id=row.organisation_id, case_id=row.id)
    return rows.filter(round=row.round, aborted=False).exists()


def _authors(at: Position, artifacts: Sequence[Artifact]) -> list[tuple[Stage, int]]:
    """The agents who submitted the stages in force; a person's revision keeps the author."""
    found: dict[Stage, int] = {}
    for each in artifacts:
        stage = Stage(each.stage)
        if each.author_id and (stage in AMENDED or each.round == at.ruled_round):
            found[stage] = each.author_id
    return list(found.items())
