"""Every error of the REST API as the envelope, never as HTML."""

from __future__ import annotations

from typing import Any

import structlog
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from core.decision import Denied
from toolbox import door
from toolbox.answers import NOTHING_THERE, Answer, answer_denial
from toolbox.caller import Caller
from toolbox.faults import fault_of

log = structlog.get_logger(__name__)


def handle_exception(problem: Exception, context: dict[str, Any]) -> Response:
    """Answer what a view raised: a refusal as its code says, all else as our own fault.

    What a known caller is refused is recorded (Spec: ledger 3).
    """
    if isinstance(problem, Denied):
        caller = getattr(context["request"], "_user", None)
        if isinstance(caller, Caller):
            called = context["view"].called
            return _response(door.refuse_call(caller, called, problem, now=caller.clock.now()))
        deny = problem.deny
    elif isinstance(problem, NotFound):  # a version that the URL names and we do not have
        deny = NOTHING_THERE
    else:
        log.error("call_failed", path=context["request"].path, exc_info=problem)
        deny = fault_of(problem)
    return _response(answer_denial(deny, tool=str(context["kwargs"].get("name", ""))[:64]))


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, headers=answer.headers)
