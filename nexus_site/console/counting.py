"""Figures that stay quick however much there is: each counts no further than a page can say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext

from contracts.models import Contract
from contracts.vocabulary import ContractState
from core.admin.actors import actor_name
from core.admin.refused import meaning_of
from ledger.models import Event, Seal
from mailroom.models import Escalation, Mail
from mailroom.vocabulary import UNSETTLED
from orgchart.editing import TABLES
from orgchart.models import Agent, Organisation
from tasks.models import Task
from tasks.vocabulary import UNFINISHED

SCANNED = 20_000
"""The newest rows a figure looks at; past them it says so with a plus sign."""


Ids = Sequence[int]
"""The organisations a figure is asked of: all of them are answered together, in one query."""


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """One refusal: its reason, its actor and its time."""

    code: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalsOfCode:
    """One reason code today: how often, and who tried most."""

    code: str
    count: int
    share: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedActor:
    """One actor today: how often it was refused, and for what most."""

    actor: str
    count: int
    share: int
    why: str

    @property
    def name(self) -> str:
        """The actor as people call it."""
        return actor_name(self.actor)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTasks:
    """Unfinished tasks: all, those without owner, and each state."""

    open: str
    free: str
    states: Sequence[tuple[str, str]]


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


class Counted(Subquery):
    """How many rows a subquery has; slice it, and it counts no further."""

    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def agents(ids: Ids) -> Mapping[int, tuple[int, int]]:
    """Active and deactivated agents."""
    rows = Agent.objects.filter(organisation__in=ids).order_by().values_list("organisation_id")
    counts = rows.annotate(a=Count("id", filter=Q(active=True)), n=Count("id"))
    return {key: (active, n - active) for key, active, n in counts}


def mails_by_hour(ids: Ids, since: datetime) -> Mapping[int, Counter[datetime]]:
    """Mails per hour among the newest: their ids begin with their time, so an index finds them."""
    earliest = f"MAIL-{since.astimezone(UTC):%Y%m%d%H%M%S}"
    newest = Mail.objects.filter(id__gte=earliest).order_by("-id")
    stamps = Counter((key, mail_id[5:15]) for key, mail_id in _of_each(ids, newest, "id"))
    found: dict[int, Counter[datetime]] = {key: Counter() for key in ids}
    for (key, stamp), n in stamps.items():
        if stamp.isdigit():
            found[key][datetime.strptime(stamp, "%Y%m%d%H").replace(tzinfo=UTC)] = n
    return found


def _of_each(ids: Ids, rows: QuerySet[Any], *columns: str) -> Iterable[tuple[Any, ...]]:
    """The first SCANNED of the rows of each organisation, in one query."""
    wanted = ("organisation_id", *columns)
    parts = [rows.filter(organisation_id=key).values_list(*wanted)[:SCANNED] for key in ids]
    return parts[0].union(*parts[1:], all=True) if len(parts) > 1 else [r for p in parts for r in p]


def newest_event() -> int:
    """The sequence number of the newest event; 0 before the first."""
    return Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0


def refusals(ids: Ids, since: datetime, newest: int) -> Mapping[int, list[RefusalCount]]:
    """Refusals among the newest events; the sequence bounds the work, the time the answer."""
    rows = Event.objects.filter(seq__gt=newest - 10 * SCANNED, at__gte=since, decision="deny")
    found: dict[int, list[RefusalCount]] = {key: [] for key in ids}
    for key, *columns in _of_each(ids, rows.order_by("-seq"), "code", "actor", "at"):
        found[key].append(RefusalCount(*columns))
    return found


def refusals_by_code(refused: Iterable[RefusalCount]) -> list[RefusalsOfCode]:
    """Refusals by code, most first, each with the actor who tried most."""
    return [
        RefusalsOfCode(code=code, count=actors.total(), share=share, who=_who(actors))
        for code, actors, share in _grouped((one.code, one.actor) for one in refused)
    ]


def refusals_by_actor(refused: Iterable[RefusalCount]) -> list[RefusedActor]:
    """Refusals by actor, most first, each with the codes it met most."""
    return [
        RefusedActor(actor=actor, count=codes.total(), share=share, why=_why(codes))
        for actor, codes, share in _grouped((one.actor, one.code) for one in refused)
    ]


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, Counter[str], int]]:
    """Each first name with its second ones counted, most first, in percent of the largest."""
    found: dict[str, Counter[str]] = {}
    for first, second in pairs:
        found.setdefault(first, Counter())[second] += 1
    most = max((counts.total() for counts in found.values()), default=1)
    order = sorted(found.items(), key=lambda one: (-one[1].total(), one[0]))
    return [(first, counts, round(100 * counts.total() / most)) for first, counts in order]


def _why(codes: Counter[str]) -> str:
    """The most frequent codes, in words."""
    return ", ".join(f"{meaning_of(code) or code} ×{n}" for code, n in codes.most_common(2))


def _who(actors: Counter[str]) -> str:
    """The most frequent actors, by name."""
    top = [f"{actor_name(actor)} ×{n}" for actor, n in actors.most_common(3)]
    more = len(actors) - 3
    return ", ".join(top) + (gettext(" and %(more)s more") % {"more": more} if more > 0 else "")


def refusals_by_hour(refused: Iterable[RefusalCount]) -> Counter[datetime]:
    """Refusals per hour."""
    return Counter(
        one.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0) for one in refused
    )


def contracts_by_state(ids: Ids) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Every state with its number of contracts, in the order of a contract's life."""
    rows = Contract.objects.filter(organisation=OuterRef("pk")).order_by()
    counts = Organisation.objects.filter(id__in=ids).values_list(
        "id", *(Counted(rows.filter(state=state).values("pk")[:SCANNED]) for state in ContractState)
    )
    return {
        key: [
            (state.value, shown(n, SCANNED)) for state, n in zip(ContractState, each, strict=True)
        ]
        for key, *each in counts
    }


def open_tasks(ids: Ids) -> Mapping[int, OpenTasks]:
    """Tasks that are neither completed nor deleted, by state, and those of them without owner."""
    states = sorted(UNFINISHED, reverse=True)
    rows = Task.objects.filter(organisation=OuterRef("pk")).order_by()
    free = rows.filter(status__in=UNFINISHED, owner=None)
    counts = Organisation.objects.filter(id__in=ids).values_list(
        "id",
        Counted(free.values("pk")[:SCANNED]),
        *(Counted(rows.filter(status=state).values("pk")[:SCANNED]) for state in states),
    )
    return {
        key: OpenTasks(
            open=shown(sum(each), SCANNED),
            free=shown(free, SCANNED),
            states=[
                (state.value, shown(n, SCANNED)) for state, n in zip(states, each, strict=True)
            ],
        )
        for key, free, *each in counts
    }


def escalations(ids: Ids, now: datetime) -> Mapping[int, tuple[int, int, int]]:
    """Open escalations; how many are past their time, and of how many the Board cannot be told."""
    rows = Escalation.objects.filter(state__in=UNSETTLED, organisation__in=ids).order_by()
    counts = rows.values_list("organisation_id").annotate(
        n=Count("id"),
        late=Count("id", filter=Q(due_at__lt=now)),
        untold=Count("board_waits_since"),
    )
    return {key: (n, late, untold) for key, n, late, untold in counts}


def last_policy_changes(ids: Ids) -> Mapping[int, Event]:
    """The newest events that changed who may what, by an index of these alone."""
    subjects = Q()
    for noun in {*(table.noun for table in TABLES.values()), "tool"}:
        subjects |= Q(subject__startswith=f"{noun}:")
    rows = Event.objects.filter(
        subjects, organisation_id=OuterRef("pk"), details__has_key="policy_version"
    )
    last = Subquery(rows.order_by("-seq").values("seq")[:1])
    newest = Organisation.objects.filter(id__in=ids).values_list(last, flat=True)
    events = Event.objects.filter(seq__in=[seq for seq in newest if seq]).defer("digest")
    return {event.organisation_id: event for event in events if event.organisation_id}


def sealed(last: int) -> Sealed | None:
    """The newest seal, and how many events up to the last wait for the next."""
    seal = Seal.objects.defer("marks").order_by("-number").first()
    if seal is None:
        return None
    waiting = Event.objects.filter(era=seal.era, xid__gte=seal.hi).order_by()[:SCANNED].count()
    return Sealed(number=seal.number, at=seal.at, waiting=shown(waiting, SCANNED), last=last)
