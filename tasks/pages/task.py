"""One task's page: what it waits for drawn, its discussion, its history, what people do to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextareaWidget

from core.actions import Action
from core.admin.acts import Act, Answer, Call, ReasonForm
from core.decision import Denied
from core.deeds import Deed
from core.events import BIGGEST
from core.people import groups_of
from ledger.history import events_of
from ledger.models import Event
from orgchart.compiling import current_policy
from orgchart.models import Agent
from tasks.discussion import MAX_COMMENTS, NOTE, approve_task, comment_task, is_note
from tasks.models import Comment, Task
from tasks.pages.graph_drawing import draw
from tasks.pages.history import told
from tasks.pages.neighbourhood import neighbourhood
from tasks.pages.refusals import for_people
from tasks.vocabulary import UNFINISHED, Status

DISCUSSION = "tasks.view_comment"
NOTICES = frozenset({Action.TASK_UNBLOCKED, Action.TASK_FREE, Action.TASK_LOST})
"""Events of the system telling one agent."""
PAST = 40
"""Events on a task's page, the newest; all of them are in its history."""


class CommentForm(forms.Form):
    """What somebody says about a task."""

    body = forms.CharField(
        label="Your words",
        max_length=10_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Agents and people read it; nobody can change or remove it.",
    )


class ApprovalForm(ReasonForm):
    """A judgement, with a remark for the discussion where there is one."""

    reason = forms.CharField(
        label="Remark",
        required=False,
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Kept in the task's discussion beside your name.",
    )


@contextmanager
def in_words_for_people(task: Task) -> Iterator[None]:
    """What the services refuse, said to whoever looks at the task's page."""
    try:
        yield
    except Denied as refusal:
        raise Denied(for_people(refusal.deny, task.number)) from refusal


def _commented(call: Call) -> Answer:
    with in_words_for_people(call.row):
        comment_task(
            caller=call.person,
            task_id=str(call.row.number),
            body=str(call.data["body"]),
            now=call.now,
        )
    return f"Your words are in the discussion of #{call.row.number}."


def _judged(call: Call, *, approve: bool) -> Answer:
    with in_words_for_people(call.row):
        approve_task(
            caller=call.person,
            task_id=str(call.row.number),
            approve=approve,
            comment=call.reason,
            expected_version=call.version,
            now=call.now,
        )
    return f"#{call.row.number} " + ("is approved." if approve else "is not approved any more.")


def _facts(task: Task) -> list[tuple[str, str]]:
    return [
        ("Task", str(task)),
        ("State", task.status.replace("_", " ")),
        ("Owner", task.owner.handle if task.owner else "nobody"),
    ]


def waits_for_approval(task: Task) -> bool:
    """Whether its type is one that the organisation wants approved, and nobody has yet."""
    types = current_policy(task.organisation_id).settings["approval_task_types"]
    return task.task_type in types and task.status in UNFINISHED and task.approved_at is None


COMMENT = Act(
    name="comment",
    title="Comment",
    deed=Deed.COMMENT_TASK,
    explanation="Neither the task's version nor its claim changes. Its owner is told.",
    perform=_commented,
    form=CommentForm,
    facts=_facts,
    icon="chat",
)
APPROVE = Act(
    name="approve",
    title="Approve the work",
    deed=Deed.APPROVE_TASK,
    explanation="A task of this type is completed only once somebody who did not do the work has "
    "approved it. The approval ends when its content or its owner changes.",
    perform=lambda call: _judged(call, approve=True),
    possible=lambda task: task.status == Status.IN_PROGRESS and waits_for_approval(task),
    form=ApprovalForm,
    version=lambda task: int(task.version),
    facts=_facts,
    icon="check_circle",
)
WITHDRAW = Act(
    name="withdraw-approval",
    title="Take the approval back",
    deed=Deed.APPROVE_TASK,
    explanation="The task is not completed until it is approved again.",
    perform=lambda call: _judged(call, approve=False),
    possible=lambda task: task.approved_at is not None and task.status in UNFINISHED,
    form=ApprovalForm,
    version=lambda task: int(task.version),
    facts=_facts,
    icon="undo",
    danger=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One contribution as it is shown. `by` is who, `kind` whether an agent or a human."""

    by: str
    kind: str
    note: bool
    body: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """The last comments, oldest first; `earlier` is the address of those before, or ''."""

    said: tuple[Said, ...]
    earlier: str
    is_newest: bool


def discussion_of(request: HttpRequest, task: Task) -> Discussion:
    """A page of the discussion: the newest comments, or those before the one that is named."""
    before = request.GET.get("before", "")
    rows = Comment.objects.filter(task=task).order_by("-id")
    asked = before.isascii() and before.isdigit() and len(before) < 19
    if asked:
        rows = rows.filter(id__lt=min(int(before), BIGGEST))
    found = list(rows[: MAX_COMMENTS + 1])
    more, found = len(found) > MAX_COMMENTS, found[:MAX_COMMENTS]
    return Discussion(
        said=tuple(_said(found[::-1])),
        earlier=f"?before={found[-1].id}#discussion" if more else "",
        is_newest=not asked,
    )


def _said(comments: Iterable[Comment]) -> Iterable[Said]:
    for one in comments:
        kind, _, name = one.author.partition(":")
        note = kind == "human" and one.body.startswith(f"{NOTE} ")
        body = one.body.removeprefix(f"{NOTE} ") if note else one.body
        yield Said(by=name or kind, kind=kind, note=note, body=body, at=one.created_at)


def _past(events: Sequence[Event]) -> list[tuple[Event, str]]:
    """Events with what they say; notices say to whom."""
    told_to = {event.for_agent_id or 0 for event in events if event.action in NOTICES}
    handles = dict(Agent.objects.filter(id__in=told_to).values_list("id", "handle"))
    return [
        (
            event,
            told(event.details, to=handles.get(event.for_agent_id or 0, ""))
            if event.action in NOTICES
            else told(event.details),
        )
        for event in events
    ]


def task_context(request: HttpRequest, task: Task, subject: str) -> dict[str, Any]:
    """What the page of one task shows beside the row itself."""
    events = events_of(subject, task.organisation_id)
    shown: dict[str, Any] = {
        "task": task,
        "picture": draw(neighbourhood(task.id)),
        "metadata": json.dumps(task.metadata, indent=2, ensure_ascii=False, sort_keys=True)
        if task.metadata
        else "",
        "past": _past(events[:PAST]),
        "older": len(events) > PAST,
        "needs_approval": waits_for_approval(task),
        "board": reverse("admin:tasks_task_board"),
    }
    if request.user.has_perm(DISCUSSION):
        shown["discussion"] = discussion_of(request, task)
    if request.user.has_perm(COMMENT.permission):
        shown["comment_form"] = CommentForm()
        shown["comment_url"] = reverse("admin:tasks_task_comment", args=[task.id])
        shown["marked"] = NOTE if is_note(groups_of(request.user)) else ""
    return shown
