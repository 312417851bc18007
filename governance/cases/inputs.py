"""What an office sees of cases: its legal inputs, and lists without content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from core import paging
from core.actions import Action
from core.database import planned_for_values
from core.decision import Denied
from governance.cases import records, rules, store
from governance.cases.facts import CaseFacts, Officer
from governance.cases.models import Artifact, Case
from governance.cases.officers import keep_officer, offices_of
from governance.cases.results import CaseInputs, CaseList, CaseListed, Inputs, OutcomeSeen, Protocol
from governance.cases.violations import as_violation
from governance.cases.vocabulary import Input, Stage, State
from ledger.services import record
from toolbox.caller import Caller


def read_inputs(
    *, case_id: str, names: Sequence[Input], caller: Caller, now: datetime
) -> CaseInputs:
    """The legal inputs of the caller's office and nothing else (Spec: constitution 4, 5).

    Who is given any acts in that office of the case from then on (Spec: constitution 37).

    Raises Denied: INPUT_DENIED for a name that the office may not see (a violation), NOT_FOUND.
    """
    who = store.officer(caller)
    with transaction.atomic():
        row = store.find(case_id, caller.organisation_id, lock=True)
        try:
            caller.require(rules.can_ask(who, names))
        except Denied as refusal:
            raise as_violation(refusal, caller, case_id, now) from refusal
        return _read(row, names, who, caller, now)


def _read(
    row: Case, names: Sequence[Input], who: Officer, caller: Caller, now: datetime
) -> CaseInputs:
    """The inputs of a locked case, with the event that they were read."""
    at, artifacts = records.position_of(row), records.artifacts_of(row)
    facts = CaseFacts(at, records.record_of(row, at, artifacts))
    legal = [name for name in rules.inputs_of(facts, who) if not names or name in names]
    standing = records.in_force(at, artifacts)
    found = {name: _given(name, row, facts, standing) for name in legal}
    inputs = {str(name): value for name, value in found.items() if value is not None}
    if inputs and (office := rules.office_now(facts, who)):
        keep_officer(row, facts, who.agent_id, office, now)
    record(
        Action.CASE_INPUTS_READ,
        by=caller,
        at=now,
        subject=f"case:{row.id}",
        details={
            "round": row.round,
            "stage": str(row.stage),
            "inputs": sorted(inputs),
            "sha256": _digests(inputs, row, standing),
        },
    )
    return CaseInputs(**store.result_of(row), inputs=Inputs(**inputs))  # type: ignore[typeddict-item]


SOURCE: Mapping[Input, Stage] = {
    Input.ANALYSIS: Stage.ANALYSIS,
    Input.TASKS: Stage.TASKS,
    Input.IMPLEMENTATION: Stage.IMPLEMENTATION,
    Input.VERIFY_BY: Stage.TASKS,
    Input.ARTIFACTS: Stage.IMPLEMENTATION,
    Input.REVIEW: Stage.REVIEW,
    Input.TEST: Stage.TEST,
}
"""The stage that an input is taken from."""


def _digests(
    inputs: Mapping[str, Any], row: Case, standing: Mapping[Stage, Artifact]
) -> dict[str, str]:
    """The digest of what each given input was taken from."""
    found = {name: standing[stage].sha256 for name, stage in SOURCE.items() if stage in standing}
    found[Input.REQUEST] = row.request_sha256
    return {name: digest for name, digest in sorted(found.items()) if name in inputs}


def _given(name: Input, row: Case, case: CaseFacts, standing: Mapping[Stage, Artifact]) -> Any:
    """An input's value, or None where it does not exist yet."""
    if name is Input.REQUEST:
        return row.request
    if name is Input.PROTOCOL:
        return _protocol(case)
    artifact = standing.get(SOURCE[name])
    if artifact is None:
        return None
    if name in (Input.REVIEW, Input.TEST):
        overruled = artifact.revision > 0
        return OutcomeSeen(outcome=artifact.outcome, round=artifact.round, overruled=overruled)
    content: dict[str, Any] = artifact.content
    if name is Input.VERIFY_BY:
        return [{"id": each["id"], "verify_by": each["verify_by"]} for each in content["tasks"]]
    return content["artifacts"] if name is Input.ARTIFACTS else content


def _protocol(case: CaseFacts) -> Protocol:
    at = case.at
    return Protocol(
        state=at.state,
        stage=at.stage,
        round=at.round,
        max_rounds=at.max_rounds,
        failed_by=at.failed_by,
        paused_by=at.paused_by,
        decisions=[ruling.value for ruling in rules.open_rulings(case)],
    )


def list_cases(*, state: State | None, cursor: str | None, limit: int, caller: Caller) -> CaseList:
    """A page of the organisation's cases, newest first, without content (Spec: constitution 30)."""
    before = paging.decode(cursor, prefix="CASE-")
    rows = Case.objects.filter(organisation_id=caller.organisation_id).order_by("-id")
    if state is not None:
        rows = rows.filter(state=state)
    if before is not None:
        rows = rows.filter(id__lt=before)
    with planned_for_values():
        found = list(rows.defer("request", "title")[: limit + 1])
    shown, more = paging.cut(found, limit, lambda row: row.id)
    acted = offices_of(caller.agent.id, shown, caller.organisation_id)
    return CaseList(
        cases=[
            CaseListed(
                **store.result_of(row),
                your_turn=rules.has_turn(
                    records.position_of(row), caller.role.offices, acted.get(row.id)
                ),
                opened_at=row.opened_at,
                moved_at=row.moved_at,
            )
            for row in shown
        ],
        next_cursor=more,
    )
