"""The story of one case in order: what the ledger holds, with contents, digests and seals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.actions import Action
from governance.cases.models import Artifact, Case
from ledger.models import Event, Seal

SHOWN = 1000
"""The newest entries of a case that its page shows."""
TITLES = {
    Action.CASE_OPENED: "Request",
    Action.CASE_SUBMITTED: "Submission",
    Action.CASE_INPUTS_READ: "Inputs read",
    Action.CASE_DECIDED: "Verdict",
    Action.CASE_VIOLATED: "STRUCTURAL VIOLATION",
    Action.CASE_INTERVENED: "Intervention",
}


@dataclass(slots=True, kw_only=True)
class Entry:
    """One thing that happened in a case."""

    at: datetime
    seq: int
    actor: str
    kind: str
    title: str
    round: int | None
    outcome: str = ""
    reason: str = ""
    digests: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    content: Any = None
    evidence: Any = None
    seal: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def timeline_of(row: Case) -> list[Entry]:
    """Every entry of a case, oldest first."""
    events = Event.objects.filter(
        subject=f"case:{row.id}",
        organisation_id=row.organisation_id,
        action__in=[action.value for action in TITLES],
    )
    newest = list(events.defer("digest").order_by("-seq")[:SHOWN])
    artifacts = {
        each.id: each
        for each in Artifact.objects.filter(organisation_id=row.organisation_id, case_id=row.id)
    }
    seals = _seals_over(newest)
    return [_entry(event, row, artifacts, seals) for event in reversed(newest)]


def _entry(event: Event, row: Case, artifacts: dict[str, Artifact], seals: list[Seal]) -> Entry:
    said = event.details
    artifact = artifacts.get(str(said.get("artifact", "")))
    entry = Entry(
        at=event.at,
        seq=event.seq,
        actor=event.actor,
        kind=event.action.partition(".")[2],
        title=TITLES[Action(event.action)],
        round=said.get("round"),
        reason=event.reason,
        outcome=str(said.get("outcome") or said.get("decision") or said.get("fault") or ""),
        facts=[(name.replace("_", " "), _shown(said[name])) for name in FACTS if said.get(name)],
        seal=next(
            (s.number for s in seals if s.era == event.era and s.lo <= event.xid < s.hi), None
        ),
    )
    if artifact is not None:
        entry.title = f"{entry.title}: {artifact.stage}"
        entry.outcome = artifact.outcome
        entry.content, entry.evidence = artifact.content, artifact.evidence
        entry.digests = [("artifact", artifact.sha256)]
    elif event.action == Action.CASE_OPENED:
        entry.content, entry.digests = row.request, [("request", row.request_sha256)]
    elif isinstance(said.get("sha256"), dict):
        entry.digests = sorted(said["sha256"].items())
    return entry


def _shown(value: object) -> str:
    """A detail of an event as text; several are separated by commas."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


FACTS = ("action_taken", "trigger_condition", "from_stage", "stage", "state", "failed_by",
         "paused_by", "signals", "inputs")  # fmt: skip
"""What an entry shows of its event's details."""


def _seals_over(events: Sequence[Event]) -> list[Seal]:
    """The seals that cover the events; those that none covers yet wait for the sealer."""
    if not events:
        return []
    first = min(event.xid for event in events)
    rows = Seal.objects.filter(hi__gt=first).defer("marks", "root", "previous", "signature")
    return list(rows.order_by("number")[:SHOWN])
