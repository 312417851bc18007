"""The board of one organisation's tasks: a column for each state, cards that move by the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from ledger.events import text
from orgchart.decision import Code, Denied, refuse
from orgchart.models import Agent, Organisation, Role
from orgchart.people import Desk, desks_of, person, record_refusal, signed_in
from tasks.discussion import comment_task
from tasks.models import Task
from tasks.planning import Update
from tasks.services import update_task
from tasks.vocabulary import LISTED, TRANSITIONS, Status, TaskType

VIEW = "tasks.view_task"
SHOWN = 100
"""Cards in a column: the newest."""


@dataclass(frozen=True, slots=True)
class Column:
    """One state with its newest cards and how many there are in all."""

    status: Status
    cards: list[Task]
    total: int

    @property
    def accepts(self) -> str:
        """The states from which a card may come here (seed 001, appendix C)."""
        return " ".join(before for before, after in TRANSITIONS.items() if self.status in after)


def organisation_of(request: HttpRequest) -> Organisation | None:
    """The organisation that was asked for, or the only one there is."""
    chosen = request.GET.get("organisation", "")
    if chosen.isascii() and chosen.isdigit() and len(chosen) < 18:
        return Organisation.objects.filter(id=int(chosen)).first()
    first = list(Organisation.objects.order_by("id")[:2])
    return first[0] if len(first) == 1 else None


def board_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The board, for whoever may see tasks; only the Board's people get handles to move cards."""
    if not request.user.has_perm(VIEW):
        raise PermissionDenied(VIEW)
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Task board",
        "opts": model_admin.opts,
    }
    organisation = organisation_of(request)
    if organisation is None:
        context["organisations"] = Organisation.objects.order_by("name")
        return TemplateResponse(request, "admin/nexus/choose_organisation.html", context)
    chosen = {name: text(request.GET.get(name, "")) for name in ("role", "owner", "type")}
    deleted = request.GET.get("deleted") == "1"
    context |= {
        "subtitle": organisation.name,
        "organisation": organisation,
        "columns": _columns(organisation, chosen, deleted=deleted),
        "acts": Desk.BOARD in desks_of(request.user),
        "chosen": chosen,
        "deleted": deleted,
        "shown": SHOWN,
        "roles": Role.objects.filter(organisation=organisation).values_list("name", flat=True),
        "owners": Agent.objects.filter(organisation=organisation)
        .order_by("handle")
        .values_list("handle", flat=True),
        "types": list(TaskType),
    }
    return TemplateResponse(request, "admin/nexus/task_board.html", context)


def _columns(
    organisation: Organisation, chosen: Mapping[str, str], *, deleted: bool
) -> list[Column]:
    rows: QuerySet[Task] = Task.objects.filter(organisation=organisation)
    if chosen["role"]:
        rows = rows.filter(required_role=chosen["role"])
    if chosen["type"]:
        rows = rows.filter(task_type=chosen["type"])
    if chosen["owner"] == "-":
        rows = rows.filter(owner=None)
    elif chosen["owner"]:
        owners = Agent.objects.filter(organisation=organisation, handle=chosen["owner"])
        rows = rows.filter(owner__in=list(owners))
    counted = rows.order_by().values("status").annotate(n=Count("id"))
    totals = {one["status"]: one["n"] for one in counted}
    return [
        Column(
            status,
            list(rows.filter(status=status).select_related("owner").order_by("-number")[:SHOWN]),
            totals.get(status.value, 0),
        )
        for status in (*LISTED, *((Status.DELETED,) if deleted else ()))
    ]


@require_POST
def move_view(request: HttpRequest, task_pk: int) -> HttpResponse:
    """Move a card by the service that agents use; the answer says what the server thinks of it."""
    if not request.user.has_perm(VIEW):
        raise PermissionDenied(VIEW)
    task = get_object_or_404(Task.objects.select_related("organisation"), pk=task_pk)
    now = timezone.now()
    try:
        shown = _moved(request, task)
    except Denied as refusal:
        record_refusal(
            who=signed_in(request),
            deny=refusal.deny,
            subject=f"task:{task.organisation.slug}/{task.number}",
            organisation_id=task.organisation_id,
            now=now,
        )
        sentence = f"{refusal.deny.message}: {refusal.deny.next_action}"
        return _answer(request, task, sentence, {"code": refusal.deny.code.value}, status=409)
    found = {"status": shown["status"], "version": shown["version"]}
    return _answer(request, task, f"#{task.number} is {shown['status']}.", found, status=200)


def _moved(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Carry out the move. Raises Denied."""
    wanted, version = request.POST.get("status", ""), request.POST.get("version", "")
    if wanted not in set(Status) or not (version.isascii() and version.isdigit()):
        raise _unreadable("a move names a state and the version that was looked at")
    if len(version) > 9:
        raise _unreadable("there is no such version")
    reason = text(request.POST.get("reason", "").strip(), 500)
    if wanted == Status.DELETED and not reason:
        raise _unreadable("deleting a task needs a reason")
    who, now = person(request, task.organisation_id), timezone.now()
    update = Update(status=Status(wanted), expected_version=int(version))
    with transaction.atomic():
        shown = update_task(caller=who, task_id=str(task.number), update=update, now=now)
        if reason:
            comment_task(caller=who, task_id=str(task.number), body=reason, now=now)
    return shown


def _unreadable(message: str) -> Denied:
    return refuse(Code.INVALID_PARAMS, message, "look at the board again", rule="task board")


def _answer(
    request: HttpRequest, task: Task, sentence: str, found: dict[str, Any], *, status: int
) -> HttpResponse:
    """For the script as JSON; for a browser without it as a message on the board."""
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"message": sentence, **found}, status=status)
    level = messages.SUCCESS if status == 200 else messages.ERROR
    messages.add_message(request, level, sentence)
    board = reverse("admin:tasks_task_board")
    return HttpResponseRedirect(f"{board}?organisation={task.organisation_id}")
