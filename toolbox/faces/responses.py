"""Answers as HTTP responses that are whole: for calls, and for what is answered outside the API."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from pydantic_core import to_json

from core.decision import Deny
from toolbox.answers import Answer, answer_denial


def json_response(
    body: Any, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """An answer as JSON bytes."""
    return HttpResponse(
        to_json(body), status=status, content_type="application/json", headers=headers or {}
    )


def error_response(deny: Deny) -> HttpResponse:
    """The envelope of a refusal that has no caller and no tool."""
    return response_of(answer_denial(deny))


def response_of(answer: Answer, status: int | None = None) -> HttpResponse:
    """An answer of the door as JSON bytes; a status replaces the answer's own."""
    return json_response(answer.body, status or answer.status, dict(answer.headers))
