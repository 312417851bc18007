"""Verify one case: its contents against their digests, its events against the ledger's seals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext

from core.actions import Action
from core.database import database_now
from governance.cases.content import digest_of
from governance.cases.models import Artifact, Case
from governance.cases.timeline import events_of_case
from ledger import keys
from ledger.models import Event
from ledger.verification import EventsReport, verify_events


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """What was compared and what is wrong; without findings the case is as it was written."""

    findings: tuple[str, ...]
    contents: int
    events: int
    seals: tuple[int, ...] = ()
    unsealed: int = 0


def verify_case(row: Case) -> CaseReport:
    """Compare every content of a case with its digest, its event and the seals over its events.

    Spec: constitution 36.
    """
    events = list(events_of_case(row))
    rows = Artifact.objects.filter(organisation_id=row.organisation_id, case_id=row.id)
    ids = list(rows.order_by("number").values_list("id", flat=True))
    artifacts = (rows.get(id=each) for each in ids)  # one at a time: each may say 1 MB
    findings = [*_request(row, events), *_artifacts(artifacts, events)]
    sealed: EventsReport | None = None
    try:
        sealed = verify_events(
            [each.seq for each in events], trusted=keys.trusted(), now=database_now()
        )
    except (keys.KeyMissing, OSError) as problem:
        findings.append(
            gettext("The seals could not be verified: %(problem)s.") % {"problem": problem}
        )
    if sealed is not None and sealed.finding is not None:
        findings.append(gettext("Ledger: %(finding)s") % {"finding": sealed.finding})
    return CaseReport(
        findings=tuple(findings),
        contents=len(ids) + 1,
        events=len(events),
        seals=sealed.seals if sealed else (),
        unsealed=sealed.unsealed if sealed else 0,
    )


def _request(row: Case, events: list[Event]) -> Iterator[str]:
    """What is wrong with the request."""
    own = digest_of("REQUEST", "OK", {"request": row.request}, ())
    kept = {e.details.get("request_sha256") for e in events if e.action == Action.CASE_OPENED}
    if own != row.request_sha256:
        yield gettext("The request does not match its SHA-256.")
    if kept != {own}:
        yield gettext("The event that opened the case names another SHA-256 than the request has.")


def _artifacts(artifacts: Iterable[Artifact], events: list[Event]) -> Iterator[str]:
    """What is wrong with what was submitted: each content, and each event that names one."""
    kept = {e.details["artifact"]: e.details.get("sha256") for e in events if _names_one(e)}
    for each in artifacts:
        name = gettext("%(stage)s of round %(round)s") % {"stage": each.stage, "round": each.round}
        own = digest_of(each.stage, each.outcome, each.content, each.evidence)
        if own != each.sha256:
            yield gettext("The content of %(name)s does not match its SHA-256.") % {"name": name}
        if kept.pop(each.id, None) != own:
            yield gettext("No event of the case names the SHA-256 that %(name)s has.") % {
                "name": name
            }
    for missing in kept:
        yield gettext("The ledger names %(missing)s, which is not there any more.") % {
            "missing": missing
        }


def _names_one(event: Event) -> bool:
    return isinstance(event.details.get("artifact"), str)
