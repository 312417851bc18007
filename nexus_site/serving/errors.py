"""Answers when no view could: the tool API's envelope under /api/ and /mcp, pages elsewhere."""

import sys
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views import defaults

from core.decision import Code, Deny, deny, status_of
from toolbox.answers import NOTHING_THERE, SERVER_STOPPING
from toolbox.faces.bodies import STRANGER_BODY, TOO_LARGE_OF_A_STRANGER
from toolbox.faces.responses import error_response
from toolbox.faults import fault_of

MACHINE_PATHS = ("/api/", "/mcp")
PAGES = "/api/docs/"
"""Pages for people among the addresses of machines."""
MALFORMED = deny(
    Code.INVALID_PARAMS,
    "this request is malformed",
    "send a complete HTTP request with a JSON object as its body",
)
FORBIDDEN = deny(
    Code.UNAUTHENTICATED,
    "this path needs other rights",
    "send Authorization: Bearer and your key",
)

NOT_ENCRYPTED = deny(
    Code.UNAUTHENTICATED,
    "keys are not accepted over plain HTTP",
    "use https://, and ask for a new key: this one was readable on the network",
    rule="https",
)
CROWD = deny(
    Code.RATE_LIMITED,
    "too many requests without a key wait here",
    "ask again when retry_after is over; calls with a key wait apart",
    rule="no agent's calls keep others from theirs (spec: wire 45)",
    retry_after=10,
)
FOREIGN = "not a host or a page of this server\n"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request Django itself refused."""
    return _answer(request, MALFORMED, lambda: defaults.bad_request(request, exception))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page this person may not see."""
    return _answer(request, FORBIDDEN, lambda: defaults.permission_denied(request, exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Nothing lives at this path."""
    unknown = deny(
        Code.NOT_FOUND,
        f"nothing answers {request.method} {request.path_info}",
        NOTHING_THERE.next_action,
    )
    return _answer(request, unknown, lambda: defaults.page_not_found(request, exception))


def server_error(request: HttpRequest) -> HttpResponse:
    """Our own fault, called while it is handled; the log has its traceback by the request's id."""
    fault = fault_of(sys.exception())
    return _answer(request, fault, lambda: _fault_page(request, fault))


def _fault_page(request: HttpRequest, fault: Deny) -> HttpResponse:
    status = status_of(fault.code)  # each fault has a page
    page = defaults.server_error(request, f"{status}.html")
    page.status_code = status
    return page


def _answer(request: HttpRequest, deny: Deny, page: Callable[[], HttpResponse]) -> HttpResponse:
    if is_for_machine(request.path_info):
        return error_response(deny)
    # What failed may have failed before the language was chosen.
    with translation.override(translation.get_language_from_request(request)):
        return page()


def is_for_machine(path: str) -> bool:
    """True if programs, not people, call this path."""
    return path.startswith(MACHINE_PATHS) and not path.startswith(PAGES)


def malformed() -> HttpResponse:
    """An address or header that is not text."""
    return HttpResponse("This request is malformed.\n", status=400, content_type="text/plain")


def crowded(path: str) -> HttpResponse:
    """Too many requests wait already of clients that have not proved who they are."""
    return _later(path, CROWD, "Too many requests wait here. Try again in a few seconds.\n")


def too_large(path: str) -> HttpResponse:
    """A body that is too large for a client that has not proved who it is."""
    if is_for_machine(path):
        return error_response(TOO_LARGE_OF_A_STRANGER)
    text = f"Sign in first; before that a request may have {STRANGER_BODY} bytes at most.\n"
    return HttpResponse(text, status=413, content_type="text/plain")


def broken(path: str) -> HttpResponse:
    """The last answer left when a face or the error page failed; called while it is handled."""
    if is_for_machine(path):
        return error_response(fault_of(sys.exception()))
    return HttpResponse("NEXUS failed to answer.\n", status=500, content_type="text/plain")


def stopping(path: str) -> HttpResponse:
    """A request whose end this server will not see: it may be carried out or not."""
    text = "NEXUS was stopped meanwhile. Load the page again to see what was done.\n"
    return _later(path, SERVER_STOPPING, text)


def _later(path: str, deny: Deny, text: str) -> HttpResponse:
    """The refusal for a program, or the text for a person; both say when to ask again."""
    if is_for_machine(path):
        return error_response(deny)
    headers = {"Retry-After": str(deny.details["retry_after"])}
    return HttpResponse(text, status=503, content_type="text/plain", headers=headers)
