"""What waits for a person's decision: each room registers its kinds, and no room knows the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any, cast

import structlog
from django.contrib.admin.utils import quote
from django.core.exceptions import EmptyResultSet
from django.db import DatabaseError, connection
from django.db.models import IntegerField, Model, QuerySet, Value
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.database import database_now, is_damaged
from core.kept import Kept
from core.labels import Text
from core.permissions import Deed

log = structlog.get_logger(__name__)

COUNTED = 100
"""Each kind is counted up to this many: a number in the navigation costs the same at any size."""
KEPT_SECONDS = 5.0  # that an alarm, or none, holds: every page of every person asks


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The person who asks what waits for them. `organisations` None: every organisation."""

    username: str
    organisations: frozenset[int] | None = None

    def sees(self, rows: QuerySet[Any], organisation: str = "organisation_id") -> QuerySet[Any]:
        """Of these rows those of organisations that the person may look at."""
        if self.organisations is None:
            return rows
        return rows.filter(**{f"{organisation}__in": self.organisations})


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to decide: what its button says, and the page of the row's table that does it."""

    label: Text
    page: str
    is_danger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One thing that waits: since when, and who asks.

    An alarm is kept for every reader, so its texts are lazy.
    """

    title: Text
    asked_by: Text
    since: datetime | None
    detail: Text = ""
    due: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingKind:
    """A kind of rows that wait: who decides them and how, where they are, what is shown of one.

    A person who may do the `deed` decides. `rows` are those that wait for this person whenever they
    are asked for: the time is the database's. `since` names the column of the time since when.
    """

    title: Text
    icon: str
    deed: Deed
    rows: Callable[[Viewer], QuerySet[Any]]
    since: str
    show: Callable[[Any], Waiting]
    choices: Sequence[Choice]

    def oldest(self, viewer: Viewer, most: int) -> Sequence[Any]:
        """The rows that wait longest."""
        return list(self.rows(viewer).order_by(self.since, "pk")[:most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that has no row: the installation itself needs a person.

    `problem` takes the time and answers None while all is well; it is the same for everybody.
    The page of the `choice` is the name of an address.
    """

    title: Text
    icon: str
    permission: str
    choice: Choice
    problem: Callable[[datetime], Waiting | None]


_registered: list[WaitingKind | Alarm] = []


def register_kinds(kinds: Iterable[WaitingKind | Alarm]) -> None:
    """Show these kinds to people from now on; each is registered once."""
    _registered.extend(each for each in kinds if each not in _registered)


def registered_kinds() -> Sequence[WaitingKind | Alarm]:
    """Every kind, in the order in which the rooms registered them."""
    return _registered


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that waits, with its kind, and whose turn it is.

    `address` is the page that shows all of it; each choice has the address of its page. The
    `organisation` is None for what belongs to the installation.
    """

    kind: WaitingKind | Alarm
    item: Waiting
    turn: str
    address: str
    choices: Sequence[tuple[Choice, str]]
    organisation: Any = None


@dataclass
class Desk:
    """Everything that waits for one person; each question is asked once.

    `may` answers whether the person holds a permission.
    """

    viewer: Viewer
    may: Callable[[str], bool]

    @cached_property
    def kinds(self) -> Mapping[int, WaitingKind]:
        """The kinds that this person decides, by their places among all."""
        return {
            place: each
            for place, each in enumerate(registered_kinds())
            if isinstance(each, WaitingKind) and self.may(each.deed.permission)
        }

    @cached_property
    def alarms(self) -> Sequence[Turn]:
        """What the installation itself needs now; for members of every organisation."""
        if self.viewer.organisations is not None:
            return []
        operator = gettext("operator of this installation")
        return [
            Turn(
                alarm, item, operator, (page := reverse(alarm.choice.page)), [(alarm.choice, page)]
            )
            for alarm, item in ringing()
            if self.may(alarm.permission)
        ]

    @property
    def total(self) -> int:
        """How much waits altogether."""
        return self.counts.total()

    @cached_property
    def counts(self) -> Counter[str]:
        """How many of each kind wait, by its title; each up to COUNTED, all in one query."""
        found = Counter(str(alarm.kind.title) for alarm in self.alarms)
        if self.kinds:
            with connection.cursor() as cursor:
                cursor.execute(*_count_statement(tuple(self.kinds), self.viewer))
                found.update(str(self.kinds[place].title) for (place,) in cursor.fetchall())
        return found

    def turns(self, most: int) -> list[Turn]:
        """What waits: alarms first, then the oldest; one query for each kind that waits.

        Each kind has an equal part, if it needs it: an agent can let any number of a kind wait
        (Spec: people 67).
        """
        oldest = (
            [_turn(kind, row) for row in kind.oldest(self.viewer, most)]
            for kind in self.kinds.values()
            if self.counts[str(kind.title)]
        )
        rows = [turn for of_each in zip_longest(*oldest) for turn in of_each if turn is not None]
        rows = rows[: max(0, most - len(self.alarms))]
        rows.sort(key=lambda each: (each.item.since is None, each.item.since))
        return [*self.alarms, *rows][:most]


@lru_cache(maxsize=128)
def _count_statement(places: tuple[int, ...], viewer: Viewer) -> tuple[str, tuple[Any, ...]]:
    """A query for the place of the kind of each row that waits, up to COUNTED a kind.

    Every page asks it, and building it takes several times as long as its answer: a person's is
    built once.
    """
    kinds = registered_kinds()
    parts = [
        cast("WaitingKind", kinds[place])
        .rows(viewer)
        .order_by()
        .annotate(place_of_kind=Value(place, output_field=IntegerField()))
        .values_list("place_of_kind")[:COUNTED]
        for place in places
    ]
    rows = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:  # no kind can have a row, for a member of no organisation
        return "SELECT 0 WHERE false", ()
    return sql, tuple(params)


def _turn(kind: WaitingKind, row: Model) -> Turn:
    return Turn(
        kind,
        kind.show(row),
        any_of(kind.deed.value.groups),
        page_of(row),
        [(each, page_of(row, each.page)) for each in kind.choices],
        getattr(row, "organisation", None),
    )


def any_of(groups: Iterable[str]) -> str:
    """The groups of which one member is enough, as people read it."""
    return gettext(" or ").join(gettext(group) for group in groups)


def _find_ringing() -> list[tuple[Alarm, Waiting]]:
    now = database_now()
    asked = [(each, _problem(each, now)) for each in registered_kinds() if isinstance(each, Alarm)]
    return [(alarm, item) for alarm, item in asked if item is not None]


def _problem(alarm: Alarm, now: datetime) -> Waiting | None:
    """What an alarm says. Where a damaged page keeps it from looking, it rings: each page asks."""
    try:
        return alarm.problem(now)
    except DatabaseError as problem:
        if not is_damaged(problem):
            raise
        log.exception("database_damaged", alarm=str(alarm.title))
        return Waiting(
            title=_("A file of the database is damaged"),
            asked_by=_("database"),
            since=now,
            detail=_("PostgreSQL's log names it; the operator's manual says how to mend it"),
        )


ringing = Kept(_find_ringing, seconds=KEPT_SECONDS)
"""The alarms that ring, with what they say."""


def page_of(row: Model, act: str = "change") -> str:
    """The address of a row's page in the admin, or of one of its acts."""
    meta = row._meta  # noqa: SLF001  Django's public name
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{act}", args=[quote(row.pk)])
