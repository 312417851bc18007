"""The story of one case in order: what the ledger holds, with contents, digests and seals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.actions import Action
from governance.cases.facts import Position
from governance.cases.models import Artifact, Case
from governance.cases.vocabulary import Signal, Stage, State
from governance.cases.wording import next_step
from ledger.models import Event
from ledger.verification import seals_over

SHOWN = 1000
"""The newest events of a case; of those before only what moved it: agents read it at will."""
SHOWN_ROUNDS = 3
"""The rounds whose contents are on one page: an office may say 1 MB in each of a hundred."""
OF_ROUNDS = (Stage.IMPLEMENTATION, Stage.REVIEW, Stage.TEST)
"""What is said anew in each round."""
MOVES = Q(action=Action.CASE_OPENED.value) | Q(details__has_key="from_state")
"""The events that opened or moved a case: they hold the digests of its contents."""
TITLES = {
    Action.CASE_OPENED: _("Request"),
    Action.CASE_SUBMITTED: _("Submission"),
    Action.CASE_INPUTS_READ: _("Inputs read"),
    Action.CASE_DECIDED: _("CONDUCTOR decides"),
    Action.CASE_VIOLATED: _("STRUCTURAL VIOLATION"),
    Action.CASE_INTERVENED: _("Intervention"),
}
GOOD = ("OK", "APPROVED", "PASSED", "DELIVER", "CONTINUE")
"""The outcomes that are no failure signal and no end."""


@dataclass(slots=True, kw_only=True)
class TimelineEntry:
    """One thing that happened in a case; `new_round` is the round that begins with it.

    `elsewhere` is the round that shows its content, where this page does not.
    """

    at: datetime
    seq: int
    actor: str
    kind: str
    title: str
    new_round: int | None = None
    elsewhere: int | None = None
    stage: str = ""
    outcome: str = ""
    colour: str = ""
    reason: str = ""
    then: str = ""
    digests: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    content: Any = None
    evidence: Any = None
    seal: int | None = None

    @property
    def lines(self) -> list[str]:
        """The constraints of an ANALYSIS, one by one."""
        found = self.content.get("constraints") or []
        return found.splitlines() if isinstance(found, str) else found


def timeline_of(row: Case, *, last: int | None = None) -> list[TimelineEntry]:
    """The entries of a case, oldest first: `events_of_case`.

    With the contents of the SHOWN_ROUNDS that end with the `last`, the newest if none is named.
    """
    events = events_of_case(row)
    artifacts = _artifacts_of(row, last or row.round)
    seals = seals_over([event.seq for event in events])
    entries, shown = [], 0
    for event in events:
        artifact = artifacts.get(str(event.details.get("artifact", "")))
        entry = _entry(event, row, artifact, seals[event.seq])
        if artifact is not None and artifact.round > shown:
            shown = entry.new_round = artifact.round
        entries.append(entry)
    return entries


def _artifacts_of(row: Case, last: int) -> dict[str, Artifact]:
    """The artifacts of a case by id; those of other rounds without what they say."""
    rows = Artifact.objects.filter(organisation_id=row.organisation_id, case_id=row.id)
    shown = Q(round__gt=last - SHOWN_ROUNDS, round__lte=last) | ~Q(stage__in=OF_ROUNDS)
    others = rows.exclude(shown).defer("content", "evidence")
    return {each.id: each for each in (*rows.filter(shown), *others)}


def events_of_case(row: Case) -> list[Event]:
    """What moved a case, and all of its newest SHOWN events, oldest first."""
    events = Event.objects.filter(
        subject=f"case:{row.id}",
        organisation_id=row.organisation_id,
        action__in=[action.value for action in TITLES],
    )
    events = events.defer("digest").order_by("-seq")
    found = list(events[:SHOWN])
    if len(found) == SHOWN:
        found += events.filter(MOVES, seq__lt=found[-1].seq)
    return found[::-1]


def _entry(event: Event, row: Case, artifact: Artifact | None, seal: int | None) -> TimelineEntry:
    said = event.details
    entry = TimelineEntry(
        at=event.at,
        seq=event.seq,
        actor=event.actor,
        kind=event.action.partition(".")[2],
        title=str(TITLES[Action(event.action)]),
        reason=event.reason,
        outcome=str(said.get("outcome") or said.get("decision") or said.get("fault") or ""),
        then=_then(said),
        facts=[(str(label), _shown(said[name])) for name, label in FACTS.items() if said.get(name)],
        seal=seal,
    )
    if artifact is not None:
        by_person = event.action == Action.CASE_INTERVENED
        entry.title = f"{entry.title}: {artifact.stage}" if by_person else str(artifact.stage)
        entry.stage, entry.outcome = str(artifact.stage), str(artifact.outcome)
        if artifact.get_deferred_fields():
            entry.elsewhere = artifact.round
        else:
            entry.content, entry.evidence = artifact.content, artifact.evidence
        entry.digests = [(str(artifact.stage), artifact.sha256)]
    elif event.action == Action.CASE_OPENED:
        entry.stage, entry.content = "REQUEST", row.request
        entry.digests = [("REQUEST", row.request_sha256)]
    elif isinstance(said.get("sha256"), dict):
        entry.digests = sorted(said["sha256"].items())
    entry.colour = "allow" if entry.outcome in GOOD else "deny" if entry.outcome else ""
    return entry


def _then(said: Mapping[str, Any]) -> str:
    """What followed, where the event moved the case."""
    if "from_state" not in said:
        return ""
    return next_step(
        Position(
            state=State(said["state"]),
            stage=Stage(said["stage"]),
            round=said["round"],
            failed_by=Signal(said["failed_by"]) if said.get("failed_by") else None,
            paused_by=Signal(said["paused_by"]) if said.get("paused_by") else None,
        )
    )


def _shown(value: object) -> str:
    """A detail of an event as text; several are separated by commas."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return gettext(text.replace("_", " ")) if text.islower() else text


FACTS = {
    "action_taken": _("Action"),
    "trigger_condition": _("Because of"),
    "failed_by": _("Failure signal"),
    "signals": _("Signals"),
    "inputs": _("Inputs"),
}
"""What an entry shows of its event's details, with the words for it."""
