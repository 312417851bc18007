"""Cases as rows: found, seen as facts, moved with their artifact and events in one statement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.actors import Actor
from core.decision import Code, Denied, Deny, refuse, stale
from core.events import Event
from core.machines import Cte, Swap, swap
from governance.cases.content import digest_of
from governance.cases.facts import Next, Officer
from governance.cases.models import Case
from governance.cases.moves import STATE_STEPS, stage_step
from governance.cases.results import CaseMoved
from governance.cases.turns import turn_events
from governance.cases.vocabulary import Outcome, Signal, Stage
from ledger import sql as ledger_sql
from orgchart.policy.compiled import Policy
from toolbox.caller import Caller
from toolbox.wake import wake


def officer(caller: Caller) -> Officer:
    """The caller as the rules of the constitution see it."""
    return Officer(caller.agent.id, caller.role.offices)


def find(case_id: str, organisation_id: int, *, lock: bool = False) -> Case:
    """The organisation's case. Raises Denied NOT_FOUND, the same for another's."""
    rows = Case.objects.select_for_update(no_key=True, of=("self",)) if lock else Case.objects.all()
    row = rows.filter(id=case_id, organisation_id=organisation_id).first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            "there is no such case",
            "call case_list for the cases of your organisation",
            rule="constitution: cases of the organisation",
        )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSubmission:
    """An artifact about to be inserted with the move that it makes."""

    stage: Stage
    round: int
    revision: int
    author_id: int | None
    author_name: str
    outcome: Outcome
    content: Mapping[str, Any]
    evidence: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    signals: Sequence[Signal] = field(default_factory=tuple)

    @property
    def sha256(self) -> str:
        """The digest it is addressed by."""
        return digest_of(self.stage, self.outcome, self.content, list(self.evidence))

    def id_in(self, row: Case) -> str:
        """Its id: that of the case with the version that it makes."""
        return f"{row.id}.{row.version + 1}"

    def cte(self, row: Case, now: datetime) -> Cte:
        """The statement that inserts it, if the case still is at the version decided on."""
        return Cte(
            "artifact",
            INSERT_ARTIFACT,
            {
                "ar_id": self.id_in(row),
                "ar_organisation": row.organisation_id,
                "ar_case": row.id,
                "ar_number": row.version + 1,
                "ar_round": self.round,
                "ar_stage": self.stage.value,
                "ar_revision": self.revision,
                "ar_author": self.author_id,
                "ar_name": self.author_name,
                "ar_outcome": self.outcome.value,
                "ar_content": json.dumps(self.content),
                "ar_evidence": json.dumps(list(self.evidence)),
                "ar_signals": [signal.value for signal in self.signals],
                "ar_sha256": self.sha256,
                "ar_at": now,
            },
        )


INSERT_ARTIFACT = """
INSERT INTO governance_artifact
    (id, organisation_id, case_id, number, round, stage, revision, author_id, author_name, outcome,
     content, evidence, signals, sha256, created_at)
SELECT %(ar_id)s::text, %(ar_organisation)s::bigint, %(ar_case)s::text, %(ar_number)s::int,
       %(ar_round)s::int, %(ar_stage)s::text, %(ar_revision)s::int, %(ar_author)s::bigint,
       %(ar_name)s::text, %(ar_outcome)s::text, %(ar_content)s::jsonb, %(ar_evidence)s::jsonb,
       %(ar_signals)s::text[], %(ar_sha256)s::text, %(ar_at)s::timestamptz
FROM swapped
"""


def advance(
    row: Case,
    to: Next,
    event: Event,
    *,
    policy: Policy,
    caller: Actor,
    now: datetime,
    submission: StageSubmission | None = None,
) -> None:
    """Save a move with its event, its artifact and the next office's events in one statement.

    Raises Denied VERSION_MISMATCH if the case moved since it was read.
    """
    was = (row.state, row.stage)
    if to.at.state != row.state:
        getattr(row, STATE_STEPS[to.at.state])()
    if to.at.stage != row.stage:
        getattr(row, stage_step(to.at.stage))()
    changes = [
        (name, before, getattr(row, name))
        for name, before in zip(("state", "stage"), was, strict=True)
        if before != getattr(row, name)
    ]
    turns = turn_events(policy, to.at, row.id, caller, now) if changes else []
    then = [
        ledger_sql.event_cte(each, name)
        for name, each in [("ev", event), *((f"tu{n}", each) for n, each in enumerate(turns))]
    ]
    if submission is not None:
        then.append(submission.cte(row, now))
    saved = swap(
        Swap(
            model=Case,
            key=row.id,
            version=row.version,
            state=changes[0] if changes else None,
            also=changes[1] if len(changes) > 1 else None,
            values={
                "round": to.at.round,
                "max_rounds": to.at.max_rounds,
                "failed_by": to.at.failed_by or "",
                "paused_by": to.at.paused_by or "",
                "moved_at": now,
            },
        ),
        then=then,
    )
    if not saved:
        raise Denied(stale_case(row.id))
    row.version += 1
    row.round, row.max_rounds, row.moved_at = to.at.round, to.at.max_rounds, now
    row.failed_by, row.paused_by = to.at.failed_by or "", to.at.paused_by or ""
    wake(*(each.for_agent_id for each in turns))


def stale_case(case_id: str) -> Deny:
    """The refusal of a change to a case that moved meanwhile."""
    return stale(case_id, "read the case again and decide again")


def result_of(row: Case) -> CaseMoved:
    """What every move answers."""
    return CaseMoved(case_id=row.id, stage=str(row.stage), round=row.round, state=str(row.state))


def move_details(row: Case, to: Next, **details: Any) -> dict[str, Any]:
    """What the ledger keeps of a move."""
    at = to.at
    return {
        "move": to.move.value,
        "from_state": str(row.state),
        "from_stage": str(row.stage),
        "state": at.state.value,
        "stage": at.stage.value,
        "round": at.round,
        "version": row.version + 1,
        "failed_by": at.failed_by,
        "paused_by": at.paused_by,
        **details,
    }
