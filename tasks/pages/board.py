"""The board of one organisation's tasks: a column for each state, cards that people move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext

from core.admin.refused import refused_as_text
from core.database import database_now
from core.decision import Code, Denied, refuse
from core.events import text
from core.ids import row_id
from core.limits import BIGGEST_VERSION
from core.people import person, record_refused_person
from core.permissions import Deed
from orgchart.admin.choosing import choose_organisation
from orgchart.models import Agent, Organisation, Role
from orgchart.policy_cache import current_policy
from tasks.by_people import move_by_person
from tasks.models import Counter, Task
from tasks.pages.common import VIEW, page_context
from tasks.pages.refusals import for_people
from tasks.results import TaskResult
from tasks.vocabulary import LISTED, TRANSITIONS, UNFINISHED, Status, TaskType

MAX_CARDS = 64
"""Cards in a column: the newest."""
MAX_SHOWN = 64
"""Cards on the board, so that the page stays light; long columns give way first."""
MAX_OWNERS = 100
"""Of more agents one is typed, not chosen."""
MAX_COUNT = 1000
"""A column's cards are counted up to here."""
MAX_FILTERED = 20_000
"""Filters without an index read that many of the newest tasks."""
FILTERS = ("role", "owner", "type")


@dataclass(frozen=True, slots=True)
class TaskCard:
    """A task on the board, the columns it may move to, and whether it needs approval first."""

    task: Task
    moves: tuple[Status, ...]
    needs_approval: bool

    @property
    def options(self) -> list[tuple[Status, str]]:
        """The columns with their labels."""
        return [(status, status_label(status)) for status in self.moves]


@dataclass(frozen=True, slots=True)
class Column:
    """One state with its newest cards; `total` counts all of them, up to MAX_COUNT."""

    status: Status
    cards: list[TaskCard]
    total: int

    @property
    def name(self) -> str:
        """The column's label."""
        return status_label(self.status)

    @property
    def count(self) -> str:
        """The number of cards, `…+` for more than were counted."""
        return str(self.total) if self.total < MAX_COUNT else f"{MAX_COUNT - 1}+"

    @property
    def exact(self) -> bool:
        """Whether all cards were counted."""
        return self.total < MAX_COUNT


@dataclass(frozen=True, slots=True)
class ChosenFilters:
    """The options of the filters and the chosen ones; an unknown option counts as none."""

    roles: list[str]
    owners: list[str]
    chosen: Mapping[str, str]
    deleted: bool

    @property
    def query(self) -> dict[str, str]:
        """The choice as query parameters."""
        found = {name: value for name, value in self.chosen.items() if value}
        return found | ({"deleted": "1"} if self.deleted else {})


def status_label(status: str) -> str:
    """A state's label."""
    return gettext(status.replace("_", " "))


def moves_of(status: str, open_blockers: int) -> tuple[Status, ...]:
    """The states a task may move to (Spec: tasks 23); a blocked one only to deleted."""
    return tuple(
        after
        for after in TRANSITIONS[Status(status)]
        if after is Status.DELETED or not open_blockers
    )


def board_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The board, for people who may see tasks; only those who may change them can move cards."""
    organisation, context = page_context(model_admin, request, gettext("Task board"))
    if organisation is None:
        return choose_organisation(request, context)
    choice = choice_of(organisation, request.GET)
    rows, narrowed = _rows(organisation, choice.chosen)
    context |= {
        "columns": _columns(rows, _approved_types(organisation), deleted=choice.deleted),
        "acts": request.user.has_perm(Deed.MANAGE_TASK.permission),
        "choice": choice,
        "back": urlencode(choice.query),
        "owner_is_typed": len(choice.owners) > MAX_OWNERS,
        "narrowed": MAX_FILTERED if narrowed else 0,
        "types": list(TaskType),
    }
    return TemplateResponse(request, "admin/nexus/task_board.html", context)


def choice_of(organisation: Organisation, asked: Mapping[str, str]) -> ChosenFilters:
    """The filters from the query parameters. Two queries."""
    roles = Role.objects.filter(organisation=organisation).order_by("name")
    agents = Agent.objects.filter(organisation=organisation).order_by("handle")
    known = {
        "role": list(roles.values_list("name", flat=True)),
        "owner": ["-", *agents.values_list("handle", flat=True)],
        "type": [kind.value for kind in TaskType],
    }
    chosen = {
        name: value if (value := asked.get(name, "")) in known[name] else "" for name in FILTERS
    }
    return ChosenFilters(known["role"], known["owner"][1:], chosen, asked.get("deleted") == "1")


def _rows(organisation: Organisation, chosen: Mapping[str, str]) -> tuple[QuerySet[Task], bool]:
    """The chosen tasks, and whether only the newest were read."""
    rows = Task.objects.filter(organisation=organisation)
    if chosen["role"]:
        rows = rows.filter(required_role=chosen["role"])
    if chosen["owner"] == "-":
        rows = rows.filter(owner=None)
    elif chosen["owner"]:
        owner = Agent.objects.filter(organisation=organisation, handle=chosen["owner"])
        rows = rows.filter(owner=owner.values_list("id", flat=True).first())
    if not chosen["type"] and not (chosen["role"] and chosen["owner"]):
        return rows, False
    if chosen["type"]:
        rows = rows.filter(task_type=chosen["type"])
    last = Counter.objects.filter(organisation=organisation).values_list("last", flat=True).first()
    edge = (last or 0) - MAX_FILTERED
    return rows.filter(number__gt=edge), edge > 0


def _approved_types(organisation: Organisation) -> frozenset[str]:
    """The types whose tasks need approval before completion."""
    return frozenset(current_policy(organisation.id).settings["approval_task_types"])


def _columns(rows: QuerySet[Task], types: frozenset[str], *, deleted: bool) -> list[Column]:
    shown = (*LISTED, Status.DELETED) if deleted else LISTED
    columns = [_column(rows.filter(status=status), status, types) for status in shown]
    most = longest_of([len(column.cards) for column in columns], MAX_SHOWN)
    return [replace(column, cards=column.cards[:most]) for column in columns]


def longest_of(lengths: Sequence[int], budget: int) -> int:
    """The most cards that a column shows so that all columns together show `budget` at most."""
    most = budget
    while most > 1 and sum(min(length, most) for length in lengths) > budget:
        most -= 1
    return most


def _column(rows: QuerySet[Task], status: Status, types: frozenset[str]) -> Column:
    newest = rows.select_related("owner").defer("description", "metadata").order_by("-number")
    cards = [
        TaskCard(
            task,
            moves_of(task.status, task.open_blockers),
            status in UNFINISHED and task.task_type in types and task.approved_at is None,
        )
        for task in newest[:MAX_CARDS]
    ]
    full = len(cards) == MAX_CARDS
    total = rows.order_by()[:MAX_COUNT].count() if full else len(cards)
    return Column(status, cards, total)


def move_task(model_admin: Any, request: HttpRequest, task_pk: int) -> HttpResponse:
    """Move a card by the service that agents use; answer with the new state or the refusal."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not request.user.has_perm(VIEW):
        raise PermissionDenied(VIEW)
    task: Task | None = model_admin.get_object(request, str(task_pk))
    if task is None:
        gone: HttpResponse = model_admin.gone(request, str(task_pk))
        return gone
    wanted = request.POST.get("status", "")
    try:
        shown = _move(request, task, wanted)
    except Denied as refusal:
        record_refused_person(
            request,
            refusal.deny,
            subject=f"task:{task.organisation.slug}/{task.number}",
            organisation_id=task.organisation_id,
            now=database_now(),
        )
        sentence = refused_as_text(for_people(refusal.deny, task.number, wanted))
        return _answer(request, task, sentence, {"code": refusal.deny.code.value}, status=409)
    task.refresh_from_db(fields=["open_blockers"])
    status = shown["status"]
    moves = moves_of(status, task.open_blockers)
    found = {
        "status": status,
        "version": shown["version"],
        "moves": list(moves),
        "names": {after: status_label(after) for after in moves},
    }
    said = gettext("#%(task)s is %(state)s.") % {"task": task.number, "state": status_label(status)}
    return _answer(request, task, said, found, status=200)


def _move(request: HttpRequest, task: Task, wanted: str) -> TaskResult:
    """Carry out the move. Raises Denied."""
    version = row_id(request.POST.get("version", ""))
    if wanted not in set(Status) or version is None or version > BIGGEST_VERSION:
        raise _unreadable("A move needs a state and the version of the page.")
    return move_by_person(
        person=person(request, task.organisation_id),
        task_id=str(task.number),
        status=Status(wanted),
        reason=text(request.POST.get("reason", "").strip(), 500),
        expected_version=int(version),
        now=database_now(),
    )


def _unreadable(message: str) -> Denied:
    return refuse(Code.INVALID_PARAMS, message, "reload the board", rule="task board")


def _answer(
    request: HttpRequest, task: Task, sentence: str, found: dict[str, Any], *, status: int
) -> HttpResponse:
    """JSON for the script; without it a message on the board that the person came from."""
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"message": sentence, **found}, status=status)
    level = messages.SUCCESS if status == 200 else messages.ERROR
    messages.add_message(request, level, sentence)
    came = choice_of(task.organisation, QueryDict(request.POST.get("back", "")))
    query = urlencode({"organisation": task.organisation_id, **came.query})
    return HttpResponseRedirect(f"{reverse('admin:tasks_task_board')}?{query}")
