"""The floors: what a careful engineer writes by hand for the same work; mounted for benchmarks.

Each floor is a key lookup, and two rows in one transaction, on the same server, tables and prepared
statements as the product: five statements. No rules, no policy, no rate, no digest; Django's own
handler, without middleware (`lab/bench/site.py`).
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, exception_handler

FIND_KEY = """
SELECT a.id, a.organisation_id, a.handle FROM orgchart_apikey k
JOIN orgchart_agent a ON a.id = k.agent_id
WHERE k.digest = %s AND k.revoked_at IS NULL AND a.active
"""
INSERT_MAIL = """
INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent, to_agent,
    mail_type, subject, body, status, created_at, delivered_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'delivered', %s, %s)
"""
INSERT_EVENT = f"""
INSERT INTO ledger_event (id, action, actor, at, organisation_id, decision, tool, subject,
    for_agent_id, kind, digest)
VALUES (%s, %s, %s, %s, %s, 'allow', %s, %s, %s, %s, '\\x{bytes(32).hex()}')
"""
READ_INBOX = """
SELECT id, from_agent, subject, status, created_at FROM mailroom_mail
WHERE recipient_id = %s ORDER BY id COLLATE "C" DESC LIMIT 50
"""
LOCK_TASK = """
SELECT id, owner_id, version, status FROM tasks_task
WHERE organisation_id = %s AND number = %s FOR UPDATE
"""
CLAIM_TASK = """
UPDATE tasks_task SET owner_id = %s, status = 'in_progress', claimed_at = %s, started_at = %s,
    updated_at = %s, version = version + 1 WHERE id = %s
"""


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>`."""

    def authenticate(self, request: Request) -> tuple[tuple[int, int, str], None]:
        """The agent's id, organisation and handle."""
        found = find_key(request.META.get("HTTP_AUTHORIZATION", ""))
        if found is None:
            raise AuthenticationFailed
        return found, None


class DefaultView(APIView):
    """An APIView with what Django REST framework does by default, and a key lookup."""

    authentication_classes = (KeyAuthentication,)
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    throttle_classes = ()
    content_negotiation_class = DefaultContentNegotiation

    def get_exception_handler(self) -> Any:
        """Answer errors as the framework does."""
        return exception_handler


class SendView(DefaultView):
    """Insert a mail and its event."""

    def post(self, request: Request) -> Response:
        """Send."""
        return Response({"mail_id": insert_mail(request.user, request.data)})


class InboxView(DefaultView):
    """Read the newest mails."""

    def post(self, request: Request) -> Response:
        """List."""
        return Response({"mails": read_inbox(request.user[0])})


class ClaimView(DefaultView):
    """Claim a task."""

    def post(self, request: Request) -> Response:
        """Claim."""
        claimed = claim_task(request.user, request.data)
        return Response({"claimed": claimed}, 200 if claimed else 409)


def send(request: HttpRequest) -> HttpResponse:
    """Insert a mail and its event, in a plain Django view."""
    agent = find_key(request.META.get("HTTP_AUTHORIZATION", ""))
    if agent is None:
        return JsonResponse({}, status=401)
    return JsonResponse({"mail_id": insert_mail(agent, json.loads(request.body))})


def find_key(authorization: str) -> tuple[int, int, str] | None:
    """The agent of a key: its id, organisation and handle."""
    digest = hashlib.sha256(authorization[7:].encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute(FIND_KEY, [digest])
        found: tuple[int, int, str] | None = cursor.fetchone()
    return found


def insert_mail(agent: tuple[int, int, str], body: dict[str, Any]) -> str:
    """The two rows of a mail in one transaction; its id."""
    agent_id, organisation_id, handle = agent
    now = datetime.now(UTC)
    mail_id = f"MAIL-{now:%Y%m%d%H%M%S%f}-{uuid4().hex[:6]}"
    recipient = body["recipient_id"]
    texts = [body[name] for name in ("to", "type", "subject", "body")]
    mail = [mail_id, organisation_id, agent_id, recipient, handle, *texts, now, now]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT_MAIL, mail)
        cursor.execute(
            INSERT_EVENT,
            event("mail.delivered", agent, now, "send_mail", f"mail:{mail_id}", recipient, "mail"),
        )
    return mail_id


def event(action: str, agent: tuple[int, int, str], at: datetime, *rest: Any) -> list[Any]:
    """The values of INSERT_EVENT."""
    _, organisation_id, handle = agent
    return [uuid4(), action, f"agent:{handle}", at, organisation_id, *rest]


def read_inbox(agent_id: int) -> list[dict[str, Any]]:
    """The newest mails of an agent."""
    with connection.cursor() as cursor:
        cursor.execute(READ_INBOX, [agent_id])
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def claim_task(agent: tuple[int, int, str], body: dict[str, Any]) -> bool:
    """Claim a task under its lock, with an event; False if it is not free."""
    agent_id, organisation_id, _ = agent
    now = datetime.now(UTC)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_TASK, [organisation_id, int(body["taskId"])])
        row, owner, version, _status = cursor.fetchone()
        if owner is not None or version != body["expectedVersion"]:
            return False
        cursor.execute(CLAIM_TASK, [agent_id, now, now, now, row])
        cursor.execute(
            INSERT_EVENT,
            event("task.updated", agent, now, "task_update", f"task:{row}", None, "task"),
        )
    return True


send.csrf_exempt = True  # type: ignore[attr-defined]

urlpatterns = [
    path("plain/send", send),
    path("send", SendView.as_view()),
    path("inbox", InboxView.as_view()),
    path("claim", ClaimView.as_view()),
]
