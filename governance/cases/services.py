"""What offices do in a case: open it, submit a stage, read the legal inputs, rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.database import hold_lock, in_last, insert_with_free_id, needs_transaction
from core.decision import Decision, Denied
from core.events import Event
from core.ids import timed_id
from governance.cases import content as forms
from governance.cases import records, rules, store, turns
from governance.cases.content import Evidence
from governance.cases.models import Artifact, Case
from governance.cases.moves import UNFINISHED
from governance.cases.officers import insert_officer, keep_officer
from governance.cases.results import ArtifactKept, CaseMoved, CaseSubmitted
from governance.cases.store import StageSubmission
from governance.cases.violations import as_violation, notify_if_paused
from governance.cases.vocabulary import OFFICE_OF, Ruling, Stage
from ledger.services import insert_event, record
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import Office
from toolbox.caller import Caller
from toolbox.wake import wake


def open_case(*, title: str, request: str, caller: Caller, now: datetime) -> CaseMoved:
    """Open a case by the Analyst's office. Raises Denied: STAGE_DENIED for every other office,
    INVALID_TRANSITION where one of the six is held by no active agent, QUOTA_EXCEEDED where too
    many of the caller's have not ended or are new.
    """
    caller.require(rules.can_open(store.officer(caller)))
    with transaction.atomic():
        caller.require(rules.can_open_another(_count_opened(caller, now)))
        row = insert_case(
            title=title,
            request=request,
            opened_by=caller.agent.id,
            policy=caller.policy,
            caller=caller,
            now=now,
        )
    return store.result_of(row)


def _count_opened(caller: Caller, now: datetime) -> int:
    """The unfinished and the new cases of an opener; of two at once the later one waits."""
    hold_lock("cases of", caller.agent.id)
    mine = Case.objects.filter(organisation_id=caller.organisation_id, opened_by=caller.agent.id)
    unfinished = mine.filter(state__in=UNFINISHED)
    new = mine.exclude(state__in=UNFINISHED).filter(
        in_last(timedelta(hours=1), "opened_at", now=now)
    )
    return sum(rows[: rules.MOST_OPENED].count() for rows in (unfinished, new))


@needs_transaction
def insert_case(
    *,
    title: str,
    request: str,
    opened_by: int | None,
    policy: Policy,
    caller: Actor,
    now: datetime,
) -> Case:
    """Insert a case at its first stage with its event; the Analyst's office gets its turn.

    Raises Denied INVALID_TRANSITION where an office is held by no active agent.
    """
    caller.require(rules.can_run_to_end(turns.held_offices(policy)))
    sha256 = forms.digest_of("REQUEST", "OK", {"request": request}, ())
    row = insert_with_free_id(
        lambda _: Case.objects.create(
            id=timed_id("CASE", now),
            organisation_id=policy.organisation_id,
            title=title,
            request=request,
            request_sha256=sha256,
            opened_by_id=opened_by,
            opened_by_name=caller.actor,
            opened_at=now,
            max_rounds=policy.settings["max_rounds"],
            moved_at=now,
        ),
        unique="governance_case_pkey",
    )
    if opened_by is not None:
        insert_officer(row, opened_by, Office.ANALYST, now)
    record(
        Action.CASE_OPENED,
        by=caller,
        at=now,
        subject=f"case:{row.id}",
        details={"request_sha256": sha256, "max_rounds": row.max_rounds},
    )
    for event in turns.turn_events(policy, records.position_of(row), row.id, caller, now):
        insert_event(event)
        wake(event.for_agent_id)
    return row


def submit_stage(
    *,
    case_id: str,
    stage: Stage,
    content: Mapping[str, Any],
    outcome: str | None,
    evidence: Sequence[Evidence],
    caller: Caller,
    now: datetime,
) -> CaseSubmitted:
    """Submit one stage; its outcome decides where the case goes.

    Raises Denied: STAGE_DENIED outside the office's own stage and turn (a violation: the round is
    aborted, see refusals.REFUSALS), INVALID_PARAMS for content in another form, INVALID_TRANSITION
    for a case that is paused or has ended, NOT_FOUND.
    """
    with transaction.atomic():
        row = store.find(case_id, caller.organisation_id, lock=True)
        facts, who = records.facts_of(row), store.officer(caller)
        _require(rules.can_take_turn(facts, who, stage), caller, case_id, now)
        found = forms.checked_outcome(stage, outcome)
        caller.require(rules.can_submit(facts, who, stage, found))
        kept = forms.checked_content(stage, found, content)
        tasks = _task_ids(row) if stage in (Stage.REVIEW, Stage.TEST) else []
        forms.require_tasks_known(stage, kept, tasks)
        submission = StageSubmission(
            stage=stage,
            round=row.round,
            revision=0,
            author_id=caller.agent.id,
            author_name=caller.handle,
            outcome=found,
            content=kept,
            evidence=forms.checked_evidence(stage, found, evidence, tasks),
            signals=forms.signals_in(stage, kept, caller.role.files.deny),
        )
        to = rules.after_submission(facts.at, stage, found)
        artifact = ArtifactKept(id=submission.id_in(row), sha256=submission.sha256)
        event = Event.by(
            caller,
            Action.CASE_SUBMITTED,
            at=now,
            subject=f"case:{row.id}",
            details=store.move_details(
                row,
                to,
                submitted=stage.value,
                outcome=found.value,
                artifact=artifact["id"],
                sha256=artifact["sha256"],
                signals=[signal.value for signal in submission.signals],
            ),
        )
        store.advance(
            row, to, event, policy=caller.policy, caller=caller, now=now, submission=submission
        )
        keep_officer(row, facts, who.agent_id, OFFICE_OF[stage], now)
        notify_if_paused(row, to, now)
    return CaseSubmitted(**store.result_of(row), artifact=artifact)


def _require(decision: Decision, caller: Caller, case_id: str, now: datetime) -> None:
    """Raises Denied, which aborts the round if the refusal is a violation."""
    try:
        caller.require(decision)
    except Denied as refusal:
        raise as_violation(refusal, caller, case_id, now) from refusal


def _task_ids(row: Case) -> list[str]:
    """The ids of the tasks in force."""
    tasks = standing_artifacts(row).get(Stage.TASKS)
    return [] if tasks is None else [task["id"] for task in tasks.content["tasks"]]


def standing_artifacts(row: Case) -> dict[Stage, Artifact]:
    """The artifacts in force, by stage."""
    return records.in_force(records.position_of(row), records.artifacts_of(row))


def decide_case(
    *, case_id: str, ruling: Ruling, reason: str, caller: Caller, now: datetime
) -> CaseMoved:
    """Rule on a case as its CONDUCTOR (Spec: constitution 28).

    Raises Denied: STAGE_DENIED for another office or before the verdict (a violation),
    INVALID_TRANSITION for what the outcomes do not allow, NOT_FOUND.
    """
    with transaction.atomic():
        row = store.find(case_id, caller.organisation_id, lock=True)
        facts, who = records.facts_of(row), store.officer(caller)
        _require(rules.can_rule(facts, who, ruling), caller, case_id, now)
        to = rules.after_ruling(facts, ruling)
        event = Event.by(
            caller,
            Action.CASE_DECIDED,
            at=now,
            subject=f"case:{row.id}",
            reason=reason.strip(),
            details=store.move_details(row, to, decision=ruling.value),
        )
        store.advance(row, to, event, policy=caller.policy, caller=caller, now=now)
        keep_officer(row, facts, who.agent_id, Office.CONDUCTOR, now)
    return store.result_of(row)
