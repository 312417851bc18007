"""Answers when no view could: the tool API's envelope under /api/ and /mcp, pages elsewhere."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults

MACHINE_PATHS = ("/api/", "/mcp")


def envelope(*, status: int, code: str, message: str, next_action: str) -> JsonResponse:
    """The one shape every error has on the wire."""
    return JsonResponse(
        {
            "ok": False,
            "error_code": code,
            "tool_name": "",
            "mode": "",
            "message": message,
            "next_action": next_action,
            "details": {},
        },
        status=status,
    )


def for_machine(request: HttpRequest) -> bool:
    """Whether a program asked."""
    return request.path_info.startswith(MACHINE_PATHS)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request Django itself refused."""
    if not for_machine(request):
        return defaults.bad_request(request, exception)
    return envelope(
        status=400,
        code="INVALID_PARAMS",
        message="this request is malformed",
        next_action="Send a JSON object of the parameters that GET /api/v1/tools describes.",
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page this person may not see."""
    if not for_machine(request):
        return defaults.permission_denied(request, exception)
    return envelope(
        status=401,
        code="UNAUTHENTICATED",
        message="this path needs other rights",
        next_action="Send Authorization: Bearer <your key>.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Nothing lives at this path."""
    if not for_machine(request):
        return defaults.page_not_found(request, exception)
    return envelope(
        status=404,
        code="NOT_FOUND",
        message=f"nothing answers {request.method} {request.path_info}",
        next_action="GET /api/v1/tools lists what you can call.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Our own fault; the log holds the trace under this request's id."""
    if not for_machine(request):
        return defaults.server_error(request)
    return envelope(
        status=500,
        code="INTERNAL",
        message="the call failed inside NEXUS and was rolled back",
        next_action="Retry once; then report the X-Request-ID of this answer.",
    )


def malformed() -> HttpResponse:
    """An address or header that is not text."""
    return HttpResponse("This request is malformed.\n", status=400, content_type="text/plain")


def broken() -> HttpResponse:
    """The last answer left when even the error page failed."""
    return HttpResponse("NEXUS failed to answer.\n", status=500, content_type="text/plain")
