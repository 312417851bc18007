"""The floor: bare views with the same statements and nothing else; mounted for benchmarks only."""

from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from core.ids import timed_id
from mailroom.delivery import INSERT_MAIL
from mailroom.inbox import page_query
from orgchart.services import digest_of
from toolbox.authentication import AUTHENTICATE

RATE = {"session": None, "burst": 1e9, "per_second": 1e9}


def authenticated(request: HttpRequest) -> tuple[int, int]:
    """Agent and organisation of the key, by the same query as the product's."""
    key = request.headers["Authorization"][7:]
    with connection.cursor() as cursor:
        cursor.execute(AUTHENTICATE, {"digest": digest_of(key), **RATE})
        row = cursor.fetchone()
    return row[0], row[1]


def send(request: HttpRequest) -> HttpResponse:
    """Insert the same mail and the same event with the same statement."""
    agent, organisation = authenticated(request)
    body = json.loads(request.body)
    now = datetime.now(UTC)
    mail_id = timed_id("MAIL", now)
    mail = {
        "id": mail_id,
        "organisation": organisation,
        "sender": agent,
        "recipient": body["recipient_id"],
        "from": "a",
        "to": body["to"],
        "type": body["type"],
        "subject": body["subject"],
        "body": body["body"],
        "priority": "medium",
        "attachments": "[]",
        "reply_to": None,
        "contract_ref": None,
        "at": now,
        "route_log": "[]",
    }
    event = {
        "id": uuid.uuid4(),
        "action": "mail.delivered",
        "actor": "a",
        "at": now,
        "organisation_id": organisation,
        "decision": "allow",
        "code": "",
        "reason": "",
        "tool": "send_mail",
        "subject": mail_id,
        "policy_version": 1,
        "args_digest": "",
        "request_id": "",
        "session_id": "",
        "for_agent_id": body["recipient_id"],
        "kind": "mail",
        "details": "{}",
        "digest": os.urandom(32),
    }
    values = {f"m_{k}": v for k, v in mail.items()} | {f"ev_{k}": v for k, v in event.items()}
    with connection.cursor() as cursor:
        cursor.execute(INSERT_MAIL, values)
        cursor.fetchone()
    return answer({"mail_id": mail_id})


def inbox(request: HttpRequest) -> HttpResponse:
    """Read the same page with the same statement."""
    agent, _ = authenticated(request)
    with connection.cursor() as cursor:
        cursor.execute(
            page_query("all", typed=False, sent_by=False, paged=False), {"me": agent, "limit": 50}
        )
        rows = cursor.fetchall()
    return answer({"mails": [list(map(str, row)) for row in rows]})


def answer(body: dict[str, object]) -> HttpResponse:
    """The answer as JSON."""
    return HttpResponse(json.dumps(body).encode(), content_type="application/json")


for view in (send, inbox):
    view.csrf_exempt = True  # type: ignore[attr-defined]

urlpatterns = [path("send", send), path("inbox", inbox)]
