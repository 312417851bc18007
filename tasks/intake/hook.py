"""The signed feedback webhook: POST /api/v1/hooks/feedback/<organisation> (Standard Webhooks)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from standardwebhooks import Webhook, WebhookVerificationError

from core.actors import System
from core.database import database_now, fetch_row
from core.decision import Code, Denied, refuse
from core.strictjson import read_object
from orgchart.organisation_settings import merged, quota_of
from tasks.intake.feedback import FeedbackItem, add_feedback, read_items
from tasks.models import FeedbackHook
from toolbox.faces.responses import error_response, json_response
from toolbox.faults import fault_of
from toolbox.quotas.charging import DAY, SMALL, charge_incoming
from toolbox.space import require_space

log = structlog.get_logger(__name__)

SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
NO_WEBHOOK = "whsec_bm9ib2R5IGhhcyB0aGlzIHNlY3JldCwgc28gbm8gb25lIGNhbiBzaWdu"
"""Checked where there is no webhook, so that the answer is that of a bad signature."""
TAKE = """
UPDATE tasks_feedbackhook AS h
SET used = free.used + CASE WHEN free.used + %(size)s <= %(burst)s THEN %(size)s ELSE 0 END,
    used_at = free.at
FROM (
    SELECT id, statement_timestamp() AS at, greatest(0, used - %(per_second)s * greatest(0,
        coalesce(extract(epoch FROM statement_timestamp() - used_at), 0))) AS used
    FROM tasks_feedbackhook WHERE id = %(hook)s FOR UPDATE
) AS free
WHERE h.id = free.id
RETURNING free.used + %(size)s <= %(burst)s
"""
"""Whether it was taken. A refusal notes its time as well: the last one may be in a future from
which the database's clock was set back, and nothing would be free again until then."""


@csrf_exempt
def feedback(request: HttpRequest, slug: str) -> HttpResponse:
    """Insert signed feedback: `{"data": item}` or `{"data": [item, …]}`, or the item itself."""
    try:
        return _receive(request, slug)
    except Denied as refusal:
        return error_response(refusal.deny)
    except Exception as problem:
        log.exception("feedback_failed", organisation=slug)
        fault = replace(fault_of(problem), next_action="send it again: no item is kept twice")
        return error_response(fault)


def _receive(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        raise refuse(
            Code.METHOD_NOT_ALLOWED,
            f"{request.method} is not allowed for this address",
            "use POST",
            rule="http method",
            allow=["POST"],
        )
    body = request.read(settings.NEXUS_MAX_BODY + 1)
    if len(body) > settings.NEXUS_MAX_BODY:
        raise refuse(
            Code.TOO_LARGE,
            f"a body may have {settings.NEXUS_MAX_BODY} bytes at most",
            "send less at once",
        )
    found = FeedbackHook.objects.filter(organisation__slug=slug)
    hook = found.select_related("organisation").first()
    _verify(hook.secret if hook else NO_WEBHOOK, request, body)
    if hook is None:
        raise _unsigned()
    require_rate(hook, len(body))
    require_space()
    items = _items(read_object(body), request.headers["webhook-id"])
    kept, known = add_signed(hook, items, len(body))
    return json_response({"ok": True, "kept": kept, "known": known})


def add_signed(hook: FeedbackHook, items: Sequence[FeedbackItem], size: int) -> tuple[int, int]:
    """Insert what is new of it, and count it in what the organisation stores (Spec: tasks 51).

    The numbers of new and of known items. Raises Denied QUOTA_EXCEEDED; then nothing is inserted.
    """
    system = System(name="feedback-hook", organisation_id=hook.organisation_id)
    with transaction.atomic():
        kept, known = add_feedback(caller=system, items=items, source="hook", now=database_now())
        if kept:
            _require_room(hook, size, rows=kept + 1)  # and the event
    return kept, known


def _require_room(hook: FeedbackHook, size: int, rows: int) -> None:
    values = merged(hook.organisation.settings)
    try:
        charge_incoming(organisation_id=hook.organisation_id, values=values, size=size, rows=rows)
    except Denied as full:
        wait = "ask this organisation's Board for more room, then send it again"
        raise Denied(replace(full.deny, next_action=wait)) from None


def _verify(secret: str, request: HttpRequest, body: bytes) -> None:
    headers = {name: request.headers.get(name, "") for name in SIGNED}
    try:
        Webhook(secret).verify(body.decode("utf-8"), headers, json_parse=False)
    except (WebhookVerificationError, ValueError) as problem:
        raise _unsigned() from problem


def require_rate(hook: FeedbackHook, size: int) -> None:
    """Count a signed message; raise Denied RATE_LIMITED where it comes too soon (Spec: tasks 51).

    At once as many bytes as an agent may write in a minute, over a day as many as in a day. A small
    message counts as 8 KB, so that they are limited in number, too.
    """
    values = merged(hook.organisation.settings)
    burst = quota_of(values, "bytes_per_minute")
    per_second = quota_of(values, "bytes_per_day") / DAY.total_seconds()
    counted = min(max(size, SMALL), burst)
    taken = {"hook": hook.id, "size": counted, "per_second": per_second, "burst": burst}
    (is_taken,) = fetch_row(TAKE, taken) or (False,)
    if is_taken:
        return
    wait = math.ceil(counted / per_second)
    raise refuse(
        Code.RATE_LIMITED,
        "this organisation's feedback webhook has sent as many bytes as it may by now",
        f"wait {wait} s, then send it again; many items in one message count less than one by one",
        rule="rate limit",
        retry_after=wait,
    )


def _unsigned() -> Denied:
    return refuse(
        Code.UNAUTHENTICATED,
        "this feedback is not signed with the organisation's secret, or too old",
        "sign it as Standard Webhooks describes; `manage.py tasks hook ORG` prints the secret",
    )


def _items(sent: dict[str, Any], message_id: str) -> list[FeedbackItem]:
    """The items; an item without an id gets one from its message."""
    items = read_items(sent.get("data", sent), "feedback")
    return [
        item
        if item.external_id
        else item.model_copy(update={"external_id": f"{message_id[:180]}#{place}"})
        for place, item in enumerate(items)
    ]
