"""What people do to cases: amend, overrule, extend, end, note; always with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict, Unpack

from django.db import transaction
from django.db.models import Max

from core.actions import Action
from core.actors import Person
from core.decision import Denied, require
from core.events import Event
from core.permissions import Deed, require_deed
from governance.cases import content as forms
from governance.cases import records, store
from governance.cases.by_people import rules
from governance.cases.by_people.vocabulary import DEED_OF, NOTE_MARK, CaseAction
from governance.cases.facts import CaseFacts, Next
from governance.cases.models import Artifact, Case
from governance.cases.results import CaseMoved
from governance.cases.services import insert_case
from governance.cases.store import StageSubmission
from governance.cases.violations import notify_if_paused
from governance.cases.vocabulary import Outcome, Stage
from governance.interventions.confirmation_codes import (
    Confirmed,
    Purpose,
    purpose_of,
    require_confirmed,
)
from governance.interventions.records import insert_intervention
from ledger.services import record
from orgchart.policy_cache import current_policy

ACTION_OF_STAGE = {
    Stage.ANALYSIS: CaseAction.AMEND_ANALYSIS,
    Stage.TASKS: CaseAction.AMEND_TASKS,
}


class CaseActionRequest(TypedDict):
    """What a person does to a case at a version, and why; `confirmed` is the proof of a code."""

    case_id: str
    reason: str
    expected_version: int
    person: Person
    now: datetime
    confirmed: NotRequired[Confirmed | None]


def open_case_as_person(*, title: str, request: str, person: Person, now: datetime) -> CaseMoved:
    """Open a case for the Board (Spec: constitution 23). Raises Denied NOT_YOURS."""
    require_deed(person, Deed.OPEN_CASE)
    policy = current_policy(person.organisation_id)
    with transaction.atomic():
        row = insert_case(
            title=title, request=request, opened_by=None, policy=policy, caller=person, now=now
        )
    return store.result_of(row)


def amend_case(
    *, stage: Stage, content: Mapping[str, Any], **request: Unpack[CaseActionRequest]
) -> CaseMoved:
    """Keep a person's version of ANALYSIS or TASKS; the original stays (Spec: constitution 22).

    Raises Denied: NOT_YOURS, STAGE_DENIED for another stage, INVALID_TRANSITION unless the case is
    paused, INVALID_PARAMS, VERSION_MISMATCH, APPROVAL_REQUIRED for HUMAN_ADMIN without a code.
    """
    action = ACTION_OF_STAGE.get(stage, CaseAction.AMEND_TASKS)
    with transaction.atomic():
        row, facts = _begin(action, {"stage": stage.value, "content": content}, request)
        require(rules.can_amend(facts, stage))
        kept = forms.checked_content(stage, Outcome.OK, content)
        submission = StageSubmission(
            stage=stage,
            round=row.round,
            revision=_next_revision(row, stage, row.round),
            author_id=None,
            author_name=request["person"].actor,
            outcome=Outcome.OK,
            content=kept,
            signals=forms.signals_in(stage, kept, ()),
        )
        to = rules.after_amendment(facts, stage)
        _intervene(row, to, action, request, submission)
        if to.at.paused_by is not facts.at.paused_by:
            notify_if_paused(row, to, request["now"])
    return store.result_of(row)


def overrule_review(*, outcome: Outcome, **request: Unpack[CaseActionRequest]) -> CaseMoved:
    """Overrule what the REVIEW said, never that it took place (Spec: constitution 19).

    Raises Denied: NOT_YOURS, APPROVAL_REQUIRED without a code, INVALID_TRANSITION where no REVIEW
    is in force or a failure signal obliges it to reject, VERSION_MISMATCH.
    """
    action = CaseAction.OVERRULE_REVIEW
    with transaction.atomic():
        row, facts = _begin(action, {"outcome": outcome.value}, request)
        require(rules.can_overrule(facts, outcome))
        number = facts.at.ruled_round
        original = Artifact.objects.get(
            organisation_id=row.organisation_id,
            case_id=row.id,
            round=number,
            stage=Stage.REVIEW,
            revision=0,
        )
        submission = StageSubmission(
            stage=Stage.REVIEW,
            round=number,
            revision=_next_revision(row, Stage.REVIEW, number),
            author_id=None,
            author_name=request["person"].actor,
            outcome=outcome,
            content={"overrules": original.sha256},
        )
        to = rules.after_overruling(facts.at, outcome)
        _intervene(row, to, action, request, submission)
        notify_if_paused(row, to, request["now"])
    return store.result_of(row)


def extend_case(*, rounds: int, **request: Unpack[CaseActionRequest]) -> CaseMoved:
    """Lift a pause and give more rounds; the CONDUCTOR rules whether the case goes on.

    Raises Denied: NOT_YOURS, APPROVAL_REQUIRED without a code, INVALID_TRANSITION,
    VERSION_MISMATCH.
    """
    action = CaseAction.EXTEND_ROUNDS
    with transaction.atomic():
        row, facts = _begin(action, {"rounds": rounds}, request)
        require(rules.can_extend(facts.at, rounds))
        _intervene(row, rules.after_extension(facts.at, rounds), action, request)
    return store.result_of(row)


def end_case(**request: Unpack[CaseActionRequest]) -> CaseMoved:
    """Stop a case. Raises Denied as `extend_case`."""
    action = CaseAction.END
    with transaction.atomic():
        row, facts = _begin(action, {}, request)
        require(rules.can_end(facts.at))
        _intervene(row, rules.after_end(facts.at), action, request)
    return store.result_of(row)


def add_note(*, case_id: str, note: str, person: Person, now: datetime) -> None:
    """Add a person's note to the case; no office sees it.

    Raises Denied: NOT_YOURS, INVALID_PARAMS for an empty note, NOT_FOUND.
    """
    action = CaseAction.ADD_NOTE
    require_deed(person, DEED_OF[action], reason=note)
    with transaction.atomic():
        row = store.find(case_id, person.organisation_id)
        subject = f"case:{row.id}"
        text = f"{NOTE_MARK} {note.strip()}"
        insert_intervention(
            person,
            {
                "deed": DEED_OF[action],
                "subject": subject,
                "trigger_condition": condition_of(row),
                "action_taken": action.value,
                "reason": text,
                "now": now,
            },
            case_id=row.id,
        )
        details = {"action_taken": action.value, "trigger_condition": condition_of(row)}
        record(
            Action.CASE_INTERVENED, by=person, at=now, subject=subject, reason=text, details=details
        )


def condition_of(row: Case) -> str:
    """The `trigger_condition` of an intervention: the stop, or where the case was."""
    if row.paused_by:
        return str(row.paused_by)
    place = f"{row.state} at {row.stage}, round {row.round}"
    return f"{row.failed_by}: {place}" if row.failed_by else place


def _begin(
    action: CaseAction, params: Mapping[str, Any], request: CaseActionRequest
) -> tuple[Case, CaseFacts]:
    """The locked case at the version that the person saw; who may, and the code, are checked."""
    person, reason = request["person"], request["reason"]
    require_deed(person, DEED_OF[action], reason=reason)
    row = store.find(request["case_id"], person.organisation_id, lock=True)
    if row.version != request["expected_version"]:
        raise Denied(store.stale_case(row.id))
    facts = records.facts_of(row)
    if rules.needs_code(person.groups, action):
        purpose = purpose_in(facts, action, row.id, row.version, {**params, "reason": reason})
        require_confirmed(request.get("confirmed"), purpose, person)
    return row, facts


def purpose_in(
    case: CaseFacts, action: CaseAction, case_id: str, version: int, params: Mapping[str, Any]
) -> Purpose:
    """What a code confirms: an action with its parameters on a case as it was shown.

    A violation during a pause changes no version, or an agent could keep people from confirming
    anything. That there was none yet is a part of what is confirmed (Spec: constitution 38).
    """
    return purpose_of(action, case_id, version, {**params, "violated": case.record.violated})


def _intervene(
    row: Case,
    to: Next,
    action: CaseAction,
    request: CaseActionRequest,
    submission: StageSubmission | None = None,
) -> None:
    """Move the case and keep the intervention, with its event."""
    person, now, reason = request["person"], request["now"], request["reason"]
    condition, details = condition_of(row), {"move": to.move.value}
    if submission is not None:
        details |= {"artifact": submission.id_in(row), "sha256": submission.sha256}
    event = Event.by(
        person,
        Action.CASE_INTERVENED,
        at=now,
        subject=f"case:{row.id}",
        reason=reason.strip(),
        details=store.move_details(
            row, to, **details, action_taken=action.value, trigger_condition=condition
        ),
    )
    policy = current_policy(row.organisation_id)
    store.advance(row, to, event, policy=policy, caller=person, now=now, submission=submission)
    insert_intervention(
        person,
        {
            "deed": DEED_OF[action],
            "subject": f"case:{row.id}",
            "trigger_condition": condition,
            "action_taken": action.value,
            "reason": reason,
            "now": now,
        },
        case_id=row.id,
        details=details,
        confirmed=request.get("confirmed") is not None,
    )


def _next_revision(row: Case, stage: Stage, number: int) -> int:
    last = Artifact.objects.filter(
        organisation_id=row.organisation_id, case_id=row.id, round=number, stage=stage
    ).aggregate(last=Max("revision"))["last"]
    return 1 if last is None else int(last) + 1
