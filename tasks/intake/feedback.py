"""Reports of product users: from files, from the signed webhook, read by agents."""

from __future__ import annotations

import csv
import io
import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core import paging
from core.actions import Action
from core.actors import Actor
from core.database import hold_lock, planned_for_values
from core.decision import Code, Denied, refuse
from core.ids import row_id
from core.permissions import Deed, require_deed
from core.storable import text_problem
from core.strictjson import read_content
from ledger.services import record
from orgchart.models import Organisation
from tasks.models import Feedback, FeedbackHook
from tasks.results import FeedbackPage
from tasks.rules.visibility import readership_of
from toolbox.caller import Caller

MAX_ITEMS = 10_000
"""Items of one import."""
MAX_REPORT, MAX_AUTHOR, MAX_CATEGORY = 20_000, 200, 64  # characters
YEARS = (1970, 2200)
"""The years that a given time may lie in: far from the limits of time arithmetic."""


def _validate_storable(text: str) -> str:
    if problem := text_problem(text):
        raise ValueError(problem)
    return text


def _as_utc(at: datetime) -> datetime:
    try:
        moment = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError:
        moment = None
    if moment is None or not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f"is not between the years {YEARS[0]} and {YEARS[1]}, in UTC")
    return moment


StorableText = Annotated[str, AfterValidator(_validate_storable)]
LenientMoment = Annotated[datetime, AfterValidator(_as_utc)]
"""A time in files and webhooks; without a zone it is UTC."""


class FeedbackItem(BaseModel):
    """One report of a user; unknown columns of a file are ignored."""

    model_config = ConfigDict(extra="ignore")

    body: StorableText = Field(min_length=1, max_length=MAX_REPORT)
    author: StorableText = Field("", max_length=MAX_AUTHOR)
    category: StorableText = Field("", max_length=MAX_CATEGORY)
    source: StorableText = Field("", max_length=64)
    rating: int | None = Field(None, ge=1, le=5)
    external_id: StorableText = Field("", max_length=200, alias="id")
    received_at: LenientMoment | None = None


def read_file(name: str, content: bytes) -> list[FeedbackItem]:
    """Read a CSV with a header line, or JSON: one object or a list of them.

    Raises Denied INVALID_PARAMS naming the item and field that cannot be read.
    """
    try:
        if name.lower().endswith(".csv"):
            text = content.decode("utf-8-sig")
            raw: Any = [_filled(line) for line in csv.DictReader(io.StringIO(text))]
        else:
            raw = read_content(content)
    except (ValueError, csv.Error) as problem:
        raise _unreadable(name, str(problem)) from problem
    return read_items(raw, name)


def read_items(raw: Any, name: str) -> list[FeedbackItem]:
    """Read one object or a list of them. Raises Denied INVALID_PARAMS."""
    listed = raw if isinstance(raw, list) else [raw]
    if len(listed) > MAX_ITEMS:
        raise _unreadable(name, f"more than {MAX_ITEMS} items")
    items = []
    for number, one in enumerate(listed, start=1):
        try:
            items.append(FeedbackItem.model_validate(one))
        except ValidationError as problems:
            first = problems.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "item"
            raise _unreadable(name, f"item {number}: {place}: {first['msg']}") from problems
    return items


def _filled(line: Mapping[str | None, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key and value not in (None, "")}


def _unreadable(name: str, problem: str) -> Denied:
    return refuse(
        Code.INVALID_PARAMS,
        f"{name}: {problem[:300]}",
        "give every item a body; all else is optional: author, category, source, rating (1-5), id, "
        "received_at",
        rule="feedback",
        feedback=problem[:300],
    )


def add_feedback(
    *, caller: Actor, items: Iterable[FeedbackItem], source: str, now: datetime
) -> tuple[int, int]:
    """Insert new items in one transaction; return how many are new and how many are known.

    An item with a known id is the same report again. Additions to an organisation follow one
    another, so that each counts what the one before inserted.
    """
    require_deed(caller, Deed.TAKE_IN_FEEDBACK)
    rows = [
        Feedback(
            organisation_id=caller.organisation_id,
            source=item.source or source,
            author=item.author,
            category=item.category,
            rating=item.rating,
            body=item.body,
            external_id=item.external_id,
            received_at=item.received_at or now,
        )
        for item in items
    ]
    with transaction.atomic():
        hold_lock("feedback", caller.organisation_id)
        before = Feedback.objects.filter(organisation_id=caller.organisation_id)
        known = set(
            before.filter(external_id__in=[row.external_id for row in rows if row.external_id])
            .values_list("external_id", flat=True)
        )  # fmt: skip
        fresh = _without_repeats([row for row in rows if row.external_id not in known])
        Feedback.objects.bulk_create(fresh, ignore_conflicts=True)
        if fresh:
            record(
                Action.FEEDBACK_RECEIVED,
                by=caller,
                at=now,
                subject=f"feedback:{source}"[:255],
                details={"items": len(fresh), "known": len(rows) - len(fresh)},
            )
    return len(fresh), len(rows) - len(fresh)


def _without_repeats(rows: Sequence[Feedback]) -> list[Feedback]:
    seen: set[str] = set()
    kept = []
    for row in rows:
        if not row.external_id or row.external_id not in seen:
            kept.append(row)
        seen.add(row.external_id)
    return kept


def list_feedback(
    *, caller: Caller, category: str | None, source: str | None, cursor: str | None, limit: int
) -> FeedbackPage:
    """One page of the organisation's feedback, newest first."""
    place = paging.number(cursor)
    found = Feedback.objects.filter(organisation_id=caller.organisation_id)
    if category is not None:
        found = found.filter(category=category)
    if source is not None:
        found = found.filter(source=source)
    if place is not None:
        found = found.filter(id__lt=place)
    with planned_for_values():
        rows = list(found.select_related("task").order_by("-id")[: limit + 1])
    page, more = paging.cut(rows, limit, lambda row: row.id)
    reads = readership_of(caller.policy, caller.agent)
    return {
        "feedback": [
            {
                "id": str(row.id),
                "source": row.source,
                "author": row.author,
                "category": row.category,
                "rating": row.rating,
                "body": row.body,
                "receivedAt": row.received_at,
                "taskId": str(row.task.number)
                if row.task and reads.covers(row.task.subject_writer)
                else None,
            }
            for row in page
        ],
        "next_cursor": more,
    }


def answer_feedback(*, caller: Caller, feedback_id: str, task_id: str) -> None:
    """Link a report to the task that answers it. Raises Denied NOT_FOUND."""
    found = Feedback.objects.filter(organisation_id=caller.organisation_id)
    number = row_id(feedback_id)
    row = None if number is None else found.filter(id=number).first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            f"there is no feedback {feedback_id[:32]!r}",
            "list it with read_user_feedback",
            rule="feedback of the own organisation",
        )
    task = row.organisation.tasks.get(number=int(task_id))
    found.filter(id=row.id).update(task=task)


def open_hook(*, caller: Actor, now: datetime, renew: bool = False) -> str:
    """Return the secret that signs an organisation's feedback; create it if there is none."""
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(id=caller.organisation_id)
        hook = FeedbackHook.objects.filter(organisation_id=caller.organisation_id).first()
        if hook is not None and not renew:
            return hook.secret
        secret = f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"
        FeedbackHook.objects.update_or_create(
            organisation_id=caller.organisation_id,
            defaults={"secret": secret, "created_by": caller.actor, "created_at": now},
        )
        record(
            Action.FEEDBACK_HOOK_RENEWED if hook else Action.FEEDBACK_HOOK_OPENED,
            by=caller,
            at=now,
            subject="feedback:hook",
        )
    return secret
