"""Every error of the REST API as the envelope, never as HTML."""

from __future__ import annotations

from typing import Any

import structlog
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from core.decision import Denied
from toolbox.answers import NOTHING_THERE, answer_denial
from toolbox.faults import fault_of

log = structlog.get_logger(__name__)


def handle_exception(problem: Exception, context: dict[str, Any]) -> Response:
    """Answer what a view raised: a refusal as its code says, all else as our own fault."""
    if isinstance(problem, Denied):
        deny = problem.deny
    elif isinstance(problem, NotFound):  # a version that the URL names and we do not have
        deny = NOTHING_THERE
    else:
        log.error("call_failed", path=context["request"].path, exc_info=problem)
        deny = fault_of(problem)
    answer = answer_denial(deny, tool=str(context["kwargs"].get("name", ""))[:64])
    return Response(answer.body, answer.status, headers=answer.headers)
