"""One task's page: a drawing of its dependencies, discussion, history and actions."""

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
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from core.actions import Action
from core.admin.acts import Act, ActRequest, Answer, ReasonForm
from core.admin.once import OnceForm
from core.decision import Denied
from core.ids import row_id
from core.people import groups_of
from core.permissions import Deed
from ledger.history import events_of
from ledger.models import Event
from orgchart.models import Agent
from orgchart.policy_cache import current_policy
from tasks.by_people import release_by_person, withdraw_approval_by_person
from tasks.discussion import MAX_COMMENTS, NOTE, approve_task, comment_task, is_note
from tasks.models import Comment, Task
from tasks.pages.graph_drawing import draw
from tasks.pages.history import describe_event
from tasks.pages.neighbourhood import neighbourhood
from tasks.pages.refusals import for_people
from tasks.vocabulary import MAX_COMMENT, UNFINISHED, Status

DISCUSSION = "tasks.view_comment"
NOTICES = frozenset({Action.TASK_UNBLOCKED, Action.TASK_FREE, Action.TASK_LOST})
"""Events that notify one agent."""
MAX_EVENTS = 40
"""Events on a task's page, the newest; all of them are in its history."""


class CommentForm(OnceForm):
    """A comment on a task."""

    body = forms.CharField(
        label=_("Your comment"),
        max_length=MAX_COMMENT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("Agents and people can read it. It cannot be changed or removed."),
    )


class ApprovalForm(ReasonForm):
    """An approval, with an optional remark for the discussion."""

    reason = forms.CharField(
        label=_("Remark"),
        required=False,
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("It appears in the task's discussion with your name."),
    )


@contextmanager
def refusals_for_people(task: Task) -> Iterator[None]:
    """Rephrase refusals of the services for people."""
    try:
        yield
    except Denied as refusal:
        raise Denied(for_people(refusal.deny, task.number)) from refusal


def _comment(call: ActRequest) -> Answer:
    with refusals_for_people(call.row):
        comment_task(
            caller=call.person,
            task_id=str(call.row.number),
            body=str(call.data["body"]),
            now=call.now,
        )
    return gettext("Your comment was added to #%(task)s.") % {"task": call.row.number}


def _approve(call: ActRequest) -> Answer:
    with refusals_for_people(call.row):
        approve_task(
            caller=call.person,
            task_id=str(call.row.number),
            comment=call.reason,
            expected_version=call.version,
            now=call.now,
        )
    return gettext("#%(task)s is approved.") % {"task": call.row.number}


def _withdraw(call: ActRequest) -> Answer:
    with refusals_for_people(call.row):
        withdraw_approval_by_person(
            person=call.person,
            task_id=str(call.row.number),
            reason=call.reason,
            expected_version=call.version,
            now=call.now,
        )
    return gettext("#%(task)s is no longer approved.") % {"task": call.row.number}


def _release(call: ActRequest) -> Answer:
    with refusals_for_people(call.row):
        release_by_person(
            person=call.person,
            task_id=str(call.row.number),
            reason=call.reason,
            expected_version=call.version,
            now=call.now,
        )
    said = gettext("#%(task)s has no owner; any agent that it is for can claim it.")
    return said % {"task": call.row.number}


def _facts(task: Task) -> list[tuple[str, str]]:
    return [
        (gettext("Task"), str(task)),
        (gettext("State"), task.get_status_display()),
        (gettext("Owner"), task.owner.handle if task.owner else gettext("none")),
    ]


def _content(task: Task) -> str:
    """What is approved: the texts and the metadata that an approval ends with."""
    return "\n\n".join(part for part in (task.description, _metadata(task)) if part)


def _metadata(task: Task) -> str:
    if not task.metadata:
        return ""
    return json.dumps(task.metadata, indent=2, ensure_ascii=False, sort_keys=True)


def waits_for_approval(task: Task) -> bool:
    """Whether it is unfinished, of a type that needs approval, and not approved yet."""
    types = current_policy(task.organisation_id).settings["approval_task_types"]
    return task.task_type in types and task.status in UNFINISHED and task.approved_at is None


COMMENT = Act(
    name="comment",
    title=_("Comment"),
    deed=Deed.COMMENT_TASK,
    explanation=_("Neither the task's version nor its claim changes. Its owner is notified."),
    perform=_comment,
    form=CommentForm,
    facts=_facts,
    icon="chat",
)
APPROVE = Act(
    name="approve",
    title=_("Approve the work"),
    deed=Deed.APPROVE_TASK,
    explanation=_(
        "A task of this type can be completed only after approval by a person or agent "
        "who did not do the work. The approval ends when its content or its owner changes."
    ),
    perform=_approve,
    possible=lambda task: task.status == Status.IN_PROGRESS and waits_for_approval(task),
    form=ApprovalForm,
    version=lambda task: int(task.version),
    facts=_facts,
    text=_content,
    icon="check_circle",
)
WITHDRAW = Act(
    name="withdraw-approval",
    title=_("Withdraw the approval"),
    deed=Deed.WITHDRAW_TASK_APPROVAL,
    explanation=_("The task cannot be completed until it is approved again."),
    perform=_withdraw,
    possible=lambda task: task.approved_at is not None and task.status in UNFINISHED,
    version=lambda task: int(task.version),
    facts=_facts,
    icon="undo",
    danger=True,
)
RELEASE = Act(
    name="release",
    title=_("Release task"),
    deed=Deed.RELEASE_TASK,
    explanation=_(
        "The owner loses the task; its state and content stay. Any agent that the task is for can "
        "claim it, the same one too: pause that agent first to prevent it. "
        "Your reason appears in the discussion."
    ),
    perform=_release,
    possible=lambda task: task.owner_id is not None and task.status in UNFINISHED,
    version=lambda task: int(task.version),
    facts=_facts,
    icon="person_remove",
    danger=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentView:
    """One comment as it is shown. `by` is the author, `kind` is agent or human."""

    by: str
    kind: str
    note: bool
    body: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionPage:
    """Comments, oldest first; `earlier` is the address of the page before, or ''."""

    comments: tuple[CommentView, ...]
    earlier: str
    is_newest: bool


def discussion_of(request: HttpRequest, task: Task) -> DiscussionPage:
    """A page of the discussion: the newest comments, or those before a given one."""
    before = row_id(request.GET.get("before", ""))
    rows = Comment.objects.filter(task=task).order_by("-id")
    if before is not None:
        rows = rows.filter(id__lt=before)
    found = list(rows[: MAX_COMMENTS + 1])
    more, found = len(found) > MAX_COMMENTS, found[:MAX_COMMENTS]
    return DiscussionPage(
        comments=tuple(_comment_views(found[::-1])),
        earlier=f"?before={found[-1].id}#discussion" if more else "",
        is_newest=before is None,
    )


def _comment_views(comments: Iterable[Comment]) -> Iterable[CommentView]:
    for one in comments:
        kind, _, name = one.author.partition(":")
        note = kind == "human" and one.body.startswith(f"{NOTE} ")
        body = one.body.removeprefix(f"{NOTE} ") if note else one.body
        yield CommentView(by=name or kind, kind=kind, note=note, body=body, at=one.created_at)


def _described(events: Sequence[Event]) -> list[tuple[Event, str]]:
    """Events with their texts; those that notify an agent name it."""
    notified = {event.for_agent_id or 0 for event in events if event.action in NOTICES}
    handles = dict(Agent.objects.filter(id__in=notified).values_list("id", "handle"))
    return [
        (
            event,
            describe_event(event.details, to=handles.get(event.for_agent_id or 0, ""))
            if event.action in NOTICES
            else describe_event(event.details),
        )
        for event in events
    ]


def task_context(request: HttpRequest, task: Task, subject: str) -> dict[str, Any]:
    """What the page of one task shows in addition to the row itself."""
    events = events_of(subject, task.organisation_id)
    shown: dict[str, Any] = {
        "task": task,
        "drawing": draw(neighbourhood(task.id)),
        "metadata": _metadata(task),
        "past": _described(events[:MAX_EVENTS]),
        "older": len(events) > MAX_EVENTS,
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
