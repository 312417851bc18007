"""What every request passes, people's and agents' alike: an id, a measure, safe defaults."""

import re
from collections.abc import Callable
from time import perf_counter
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from structlog.contextvars import bound_contextvars

from core.database import planned_for_values
from core.measures import measure

REQUEST_ID = re.compile(r"[\w.-]{8,64}", re.ASCII)


class Observe:
    """Names the request (`request.request_id`), measures it, and returns the name to the client."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Wrap what answers."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer; a client's own request id is for its logs and ours, never for the ledger."""
        begun = perf_counter()
        request_id = uuid4().hex
        setattr(request, "request_id", request_id)  # noqa: B010 - an attribute of ours on Django's class
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        if REQUEST_ID.fullmatch(given):
            with bound_contextvars(request_id=request_id, client_request_id=given):
                response = self.get_response(request)
        else:
            response = self.get_response(request)
        response.headers["X-Request-ID"] = request_id
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Cache-Control", "no-store")
        route = request.resolver_match.route if request.resolver_match else "none"
        measure(str(request.method), route, response.status_code, perf_counter() - begun)
        return response


def plan_pages(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Let PostgreSQL plan a page's statements for what is asked: a list has many filters."""

    def answer(request: HttpRequest) -> HttpResponse:
        with planned_for_values():
            return get_response(request)

    return answer
