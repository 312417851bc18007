"""The REST face: reads the request, asks the door, writes the envelope."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, cast

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import RawPostDataException, UnreadablePostError
from django.utils import timezone
from pydantic_core import to_json

from core.decision import Code, Denied, Deny, refuse, status_of
from core.strictjson import read_object
from toolbox import door, sessions
from toolbox.authentication import authenticate
from toolbox.caller import Caller
from toolbox.faces import prompt
from toolbox.faces.exports import EXPORTS, listing

log = structlog.get_logger(__name__)

LAST = "nexus.last"
"""In the scope of a request that waits: whether no look follows this one."""

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
CalledView = Callable[Concatenate[HttpRequest, Caller, P], HttpResponse]


def json_response(
    body: Any, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """An answer as JSON bytes. A refusal is in the ledger; Django need not log it a second time."""
    response = HttpResponse(
        to_json(body), status=status, content_type="application/json", headers=headers or {}
    )
    response._has_been_logged = status != 500  # type: ignore[attr-defined]  # noqa: SLF001
    return response


def error_response(deny: Deny, *, tool: str = "", mode: str = "") -> HttpResponse:
    """The envelope of a refusal that has no caller or no tool."""
    return json_response(
        door.envelope(deny, tool=tool, mode=mode), status_of(deny.code), door.headers_of(deny)
    )


def face(*methods: str) -> Callable[[CalledView[P]], View[P]]:
    """Wrap a view: method, size, authentication, and every error as the envelope, never HTML."""

    def wrap(view: CalledView[P]) -> View[P]:
        @functools.wraps(view)
        def answered(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            tool = str(kwargs.get("name", ""))[:64]
            try:
                _require_method(request, methods)
                caller = caller_of(request)
                response = view(request, caller, *args, **kwargs)
                response.agent_id = caller.agent.id  # type: ignore[attr-defined]
                return response  # noqa: TRY300  what follows answers refusals
            except Denied as refusal:
                return error_response(refusal.deny, tool=tool)
            except Exception:
                log.exception("call_failed", path=request.path)
                return error_response(door.internal(), tool=tool)

        answered.csrf_exempt = True  # type: ignore[attr-defined]
        return cast("View[P]", answered)

    return wrap


def _require_method(request: HttpRequest, methods: tuple[str, ...]) -> None:
    if request.method not in methods:
        raise refuse(
            Code.METHOD_NOT_ALLOWED,
            f"{request.method} is not for this address",
            f"use {' or '.join(methods)}",
            rule="http method",
            allow=list(methods),
        )


def caller_of(request: HttpRequest) -> Caller:
    """The caller that the Authorization header proves. Raises Denied."""
    return authenticate(
        authorization=request.headers.get("Authorization", ""),
        session_id=request.headers.get("X-Nexus-Session"),
        request_id=getattr(request, "request_id", "") or uuid.uuid4().hex,
    )


def params_of(request: HttpRequest) -> dict[str, Any]:
    """The parameters in the body. Raises Denied: TOO_LARGE, INVALID_PARAMS."""
    limit = settings.NEXUS_MAX_BODY
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
        body = b"" if length > limit else request.read(limit + 1)
    except (ValueError, RawPostDataException, UnreadablePostError) as problem:
        raise refuse(
            Code.INVALID_PARAMS, "the body could not be read", "send it again whole"
        ) from problem
    if length > limit or len(body) > limit:
        raise refuse(
            Code.TOO_LARGE,
            f"a body may have {limit} bytes at most",
            "send less, or save it in parts",
            rule="body size",
        )
    kind = (request.content_type or "").lower()
    if body and kind not in ("application/json", ""):
        raise refuse(
            Code.INVALID_PARAMS,
            f"Content-Type {kind[:64]!r} is not read here",
            "send a JSON object as application/json",
            rule="content type",
        )
    return read_object(body)


@face("GET")
def me(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Who the key says is calling (wire: /me)."""
    return json_response(
        {
            "agent": caller.handle,
            "address": caller.agent.address,
            "role": caller.role.name,
            "level": caller.role.level,
            "organisation": caller.policy.organisation,
            "session": sessions.shown(caller.session),
            "frame": None if caller.frame_id is None else str(caller.frame_id),
            "policy_version": caller.policy.version,
        }
    )


@face("GET")
def tools(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The exposure gate: what the execution gate would let through now (wire: /tools)."""
    form = request.GET.get("format", "")
    if form not in EXPORTS:
        raise refuse(
            Code.INVALID_PARAMS,
            f"there is no format {form[:32]!r}",
            f"use one of: {', '.join(f for f in EXPORTS if f)}; or none",
            rule="parameters",
        )
    return json_response({"tools": listing(caller.holder, form)})


@face("POST")
def call(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Call one tool (wire: /tools/<name>)."""
    try:
        params = params_of(request)
    except Denied as refusal:
        answer = door.unreadable(caller, name, refusal, now=timezone.now())
    else:
        answer = door.call(
            caller,
            name,
            params,
            now=timezone.now(),
            idempotency_key=request.headers.get("Idempotency-Key"),
            last=getattr(request, "scope", {}).get(LAST, True),
        )
    response = json_response(answer.body, answer.status, dict(answer.headers))
    response.found_nothing = door.is_empty(name, answer)  # type: ignore[attr-defined]
    return response


@face("POST")
def open_session(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Open a session in the default mode, whatever is asked (wire: /sessions)."""
    params = params_of(request)
    answer = door.guarded(
        caller,
        "sessions.open",
        params,
        work=lambda caller: sessions.open_session(caller=caller, params=params, now=timezone.now()),
        now=timezone.now(),
        idempotency_key=request.headers.get("Idempotency-Key"),
    )
    status = 201 if answer.status == 200 else answer.status
    return json_response(answer.body, status, dict(answer.headers))


@face("GET")
def session(request: HttpRequest, caller: Caller, session_id: str) -> HttpResponse:
    """One of the caller's own sessions (wire: /sessions/<id>)."""
    return json_response(sessions.read_session(caller=caller, session_id=session_id))


@face("POST")
def explain(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What a call would answer, and why; nothing else happens (wire: /explain)."""
    body = params_of(request)
    name, params = body.get("tool"), body.get("params", {})
    if set(body) - {"tool", "params"} or not isinstance(name, str) or not isinstance(params, dict):
        raise refuse(
            Code.INVALID_PARAMS,
            "explain takes {tool: name, params: {…}}",
            "name the tool and the parameters you would call it with",
            rule="parameters",
        )
    return json_response(door.explain(caller, name, params, now=timezone.now()))


@face("GET")
def prompt_text(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The system prompt for this caller (wire: /prompt)."""
    return json_response({"prompt": prompt.build(caller)})


def not_found(request: HttpRequest, path: str = "") -> HttpResponse:
    """Any other address below /api/."""
    return error_response(
        Deny(
            Code.NOT_FOUND,
            "there is nothing at this address",
            "see /api/docs/ for the addresses there are",
        )
    )


not_found.csrf_exempt = True  # type: ignore[attr-defined]
