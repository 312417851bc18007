"""Figures that stay quick however much there is: each counts no further than a page can say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from contracts.models import Contract
from contracts.vocabulary import State
from ledger.models import Event, Seal
from mailroom.models import WAITING, Escalation, Mail
from orgchart.editing import NOUNS
from orgchart.models import Agent
from tasks.models import Task
from tasks.vocabulary import UNFINISHED

SCANNED = 20_000
"""The newest rows a figure looks at; past them it says so with a plus sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """One reason code today: how often, and who tried most."""

    code: str
    count: int
    share: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """How far the ledger is sealed."""

    number: int
    at: datetime
    waiting: str
    last: int


def shown(count: int, limit: int) -> str:
    """A count as people read it; a plus where counting stopped."""
    return f"{count:,}" + ("+" if count >= limit else "")


def agents(organisation_id: int) -> tuple[int, int]:
    """Active and deactivated agents."""
    active = Count("id", filter=Q(active=True))
    row = Agent.objects.filter(organisation_id=organisation_id).aggregate(a=active, n=Count("id"))
    return row["a"], row["n"] - row["a"]


def mails_since(organisation_id: int, since: datetime) -> str:
    """Mails since a moment: their ids begin with their time, so an index counts them."""
    rows = _mails(organisation_id, since)[:SCANNED]
    return shown(rows.count(), SCANNED)


def mails_by_hour(organisation_id: int, since: datetime) -> Mapping[datetime, int]:
    """Mails per hour among the newest."""
    ids = _mails(organisation_id, since).order_by("-id").values_list("id", flat=True)[:SCANNED]
    stamps = Counter(mail_id[5:15] for mail_id in ids)
    return {
        datetime.strptime(stamp, "%Y%m%d%H").replace(tzinfo=UTC): n
        for stamp, n in stamps.items()
        if stamp.isdigit()
    }


def _mails(organisation_id: int, since: datetime) -> QuerySet[Mail]:
    earliest = f"MAIL-{since.astimezone(UTC):%Y%m%d%H%M%S}"
    return Mail.objects.filter(organisation_id=organisation_id, id__gte=earliest)


def _refused(organisation_id: int, since: datetime) -> QuerySet[Event]:
    """Refusals among the newest events; the sequence bounds the work, the time the answer."""
    newest = Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    return Event.objects.filter(
        organisation_id=organisation_id, seq__gt=newest - 10 * SCANNED, at__gte=since
    ).filter(decision="deny")


def refusals_since(organisation_id: int, since: datetime) -> list[Refusals]:
    """Refusals by code, most first, each with the actor who tried most."""
    rows = _refused(organisation_id, since).order_by("-seq").values_list("code", "actor")[:SCANNED]
    codes: dict[str, Counter[str]] = {}
    for code, actor in rows:
        codes.setdefault(code, Counter())[actor] += 1
    most = max([1, *(sum(c.values()) for c in codes.values())])
    found = [
        Refusals(
            code=code,
            count=sum(actors.values()),
            share=round(100 * sum(actors.values()) / most),
            who=_who(actors),
        )
        for code, actors in codes.items()
    ]
    return sorted(found, key=lambda r: (-r.count, r.code))


def _who(actors: Counter[str]) -> str:
    """The most frequent actors, by name."""
    top = [f"{actor.partition(':')[2]} ×{n}" for actor, n in actors.most_common(3)]
    more = len(actors) - 3
    return ", ".join(top) + (f" and {more} more" if more > 0 else "")


def refusals_by_hour(organisation_id: int, since: datetime) -> Mapping[datetime, int]:
    """Refusals per hour among the newest."""
    times = _refused(organisation_id, since).order_by("-seq").values_list("at", flat=True)
    return Counter(
        at.astimezone(UTC).replace(minute=0, second=0, microsecond=0) for at in times[:SCANNED]
    )


def contracts_by_state(organisation_id: int) -> Sequence[tuple[str, int]]:
    """Every state with its number of contracts, in the order of a contract's life."""
    rows = Contract.objects.filter(organisation_id=organisation_id).order_by()
    found = dict(rows.values_list("state").annotate(n=Count("pk")))
    return [(state.value, found.get(state.value, 0)) for state in State]


def open_tasks(organisation_id: int) -> tuple[str, str]:
    """Tasks that are neither completed nor deleted, and those of them that nobody owns."""
    rows = Task.objects.filter(organisation_id=organisation_id, status__in=UNFINISHED).order_by()
    unowned = rows.filter(owner=None)
    return (
        shown(rows[:SCANNED].count(), SCANNED),
        shown(unowned[:SCANNED].count(), SCANNED),
    )


def escalations(organisation_id: int, now: datetime) -> tuple[int, int]:
    """Escalations that wait, each by its last step, and how many of them are past their time."""
    waiting = Q(state__in=WAITING, followers=None)
    row = Escalation.objects.filter(waiting, organisation_id=organisation_id).aggregate(
        n=Count("id"), late=Count("id", filter=Q(due_at__lt=now))
    )
    return row["n"], row["late"]


def last_policy_change(organisation_id: int) -> Any:
    """The newest event that changed who may what; found by its subject, which is indexed."""
    subjects = Q()
    for noun in {*NOUNS.values(), "tool"}:
        subjects |= Q(subject__startswith=f"{noun}:")
    rows = Event.objects.filter(
        subjects, organisation_id=organisation_id, details__has_key="policy_version"
    )
    return rows.defer("digest").order_by("-seq").first()


def sealed() -> Sealed | None:
    """The newest seal, and how many events wait for the next."""
    seal = Seal.objects.defer("marks").order_by("-number").first()
    last = Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    if seal is None:
        return None
    waiting = Event.objects.filter(era=seal.era, xid__gte=seal.hi).order_by()[:SCANNED].count()
    return Sealed(number=seal.number, at=seal.at, waiting=shown(waiting, SCANNED), last=last)
