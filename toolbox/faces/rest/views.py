"""The REST API: reads the request, asks the door, returns its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from core.decision import Code, Denied, refuse
from orgchart.pauses.rules import PauseFacts
from toolbox import door, sessions
from toolbox.answers import NOTHING_THERE
from toolbox.caller import Caller
from toolbox.explaining import explain
from toolbox.faces import prompt
from toolbox.faces.exports import FOREIGN_FORMS, listing
from toolbox.faces.long_poll import seconds_to_wait
from toolbox.faces.responses import response_of
from toolbox.faces.rest.formats import JSONRenderer, PersonRenderer
from toolbox.faces.results import PauseSummary
from toolbox.idempotency import NOT_KEPT

LAST = "nexus.last"
"""In the scope of a request that may wait: whether no look follows this one; None for the first."""


class AgentRequest(Request):
    """The framework's request, whose body is one JSON object: no forms and no files."""

    _object: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object of the body, read once. Raises Denied."""
        if self._object is None:
            read = self.parsers[0].parse
            self._object = read(self._request, self.content_type, self.parser_context)
        return self._object


@dataclass(frozen=True, slots=True)
class Shared:
    """What reads and proves the requests of a view: it keeps nothing of them, so is made once."""

    parsers: Sequence[BaseParser]
    authenticators: Sequence[BaseAuthentication]
    negotiator: BaseContentNegotiation
    throttles: Sequence[BaseThrottle]


class AgentView(APIView):
    """Base of the API's views; settings.REST_FRAMEWORK says how callers prove themselves.

    `request.user` is the Caller, `request.data` the JSON object of the body. Of the framework's
    steps a call takes those that decide something: it asks who calls and how often. A renderer is
    chosen for an answer that needs one, versions and permissions there are none.
    """

    method = "POST"
    called = ""
    """What the ledger calls a request of this view, where no tool is called."""
    format_kwarg = None
    default_response_headers: dict[str, str] = {}

    @classmethod
    @cache
    def shared(cls) -> Shared:
        """What this class and the settings name, made at the first request."""
        view = cls()
        return Shared(
            parsers=view.get_parsers(),
            authenticators=view.get_authenticators(),
            negotiator=view.get_content_negotiator(),
            throttles=view.get_throttles(),
        )

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """The framework's request, read and proved by what all requests of this class share."""
        shared = self.shared()
        return AgentRequest(
            request,
            parsers=shared.parsers,
            authenticators=shared.authenticators,
            negotiator=shared.negotiator,
            parser_context=self.get_parser_context(request),
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Ask who calls, and whether it may call again."""
        self.perform_authentication(request)
        for throttle in self.shared().throttles:
            throttle.allow_request(request, self)

    def perform_authentication(self, request: Request) -> None:
        """Check the method before the key: a call that no agent can make needs no caller."""
        if request.method != self.method:
            raise refuse(
                Code.METHOD_NOT_ALLOWED,
                f"{request.method} is not for this address",
                f"use {self.method}",
                rule="http method",
                allow=[self.method],
            )
        (authentication,) = self.shared().authenticators
        request.user, request.auth = authentication.authenticate(request)

    def finalize_response(
        self, request: Request, response: HttpResponse, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Prepare what a renderer writes; any other answer is whole."""
        if isinstance(response, Response):
            super().finalize_response(request, response, *args, **kwargs)
        return response

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer, and let go of the request and its body at once.

        The framework's contexts name request, view and response, which name them: such a circle
        stays in memory until Python looks for circles, and the search costs a twentieth of a call.
        """
        response: HttpResponse = super().dispatch(request, *args, **kwargs)
        if isinstance(response, Response):
            response.render()
            response.renderer_context.clear()
        self.request.parser_context.clear()
        return response


class ReadView(AgentView):
    """Base of what only shows something: a signed-in person sees its page in a browser."""

    method = "GET"
    renderer_classes = (JSONRenderer, PersonRenderer)


class MeView(ReadView):
    """Who the key says is calling."""

    def get(self, request: Request) -> Response:
        """Describe the caller, its session and its frame."""
        caller: Caller = request.user
        return Response(
            {
                "agent": caller.handle,
                "address": caller.agent.address,
                "role": caller.role.name,
                "level": caller.role.level,
                "organisation": caller.policy.organisation,
                "session": sessions.summarise_session(caller.session),
                "frame": None if caller.frame_id is None else str(caller.frame_id),
                "policy_version": caller.policy.version,
                "paused": None if caller.pause is None else summarise_pause(caller.pause),
            }
        )


class ToolListView(ReadView):
    """The tools that the execution gate would let through now; `?format=` for other ecosystems."""

    called = "tools.list"

    def get(self, request: Request) -> Response:
        """List the caller's tools."""
        forms = request.query_params.getlist("format")
        if forms and (len(forms) > 1 or forms[0] not in FOREIGN_FORMS):
            raise refuse(
                Code.INVALID_PARAMS,
                f"there is no format {','.join(forms)[:32]!r}",
                f"use one of: {', '.join(FOREIGN_FORMS)}; or none",
                rule="parameters",
            )
        return Response({"tools": listing(request.user.holder, *forms)})


class ToolCallView(AgentView):
    """Call one tool."""

    def post(self, request: Request, name: str) -> HttpResponse:
        """Let the door answer; a body that cannot be read is a refused call too.

        The answer is always JSON, so no renderer is asked.
        """
        caller: Caller = request.user
        now = caller.clock.now()
        last, seconds = getattr(request._request, "scope", {}).get(LAST, True), 0  # noqa: SLF001
        try:
            params = request.data
        except Denied as refusal:
            answer = door.refuse_call(caller, name, refusal, now=now)
        else:
            if last is None:
                seconds = seconds_to_wait(params)
                last = not seconds
            answer = door.call(
                caller,
                name,
                params,
                now=now,
                idempotency_key=request.META.get("HTTP_IDEMPOTENCY_KEY"),
                last=last,
            )
        response: Any = response_of(answer)
        response.agent_id = caller.agent.id
        response.organisation_id = caller.organisation_id
        response.is_empty = door.is_empty(name, answer)
        response.seconds = seconds
        return response  # type: ignore[no-any-return]


class SessionListView(AgentView):
    """Open a session in the default mode, whatever is asked."""

    called = "sessions.open"

    def post(self, request: Request) -> HttpResponse:
        """Open a session."""
        now = request.user.clock.now()
        answer = door.act(
            request.user,
            self.called,
            request.data,
            work=lambda caller: sessions.open_session(caller=caller, params=request.data, now=now),
            now=now,
            idempotency_key=request.META.get("HTTP_IDEMPOTENCY_KEY"),
        )
        return response_of(answer, 201 if answer.status == 200 else answer.status)


class SessionDetailView(ReadView):
    """One of the caller's own sessions."""

    called = "sessions.read"

    def get(self, request: Request, session_id: str) -> HttpResponse | Response:
        """Describe the session."""
        refused = door.refuse_paused(request.user, self.called, now=request.user.clock.now())
        if refused is not None:
            return response_of(refused)
        return Response(sessions.read_session(caller=request.user, session_id=session_id))


class ExplainView(AgentView):
    """What a call would answer, and by which rule; nothing else happens."""

    called = "calls.explain"

    def post(self, request: Request) -> HttpResponse:
        """Explain a call; with an idempotency key once, as every POST (Spec: wire 19)."""
        body = request.data
        name, params = body.get("tool"), body.get("params", {})
        if (
            body.keys() - {"tool", "params"}
            or not isinstance(name, str)
            or not isinstance(params, dict)
        ):
            raise refuse(
                Code.INVALID_PARAMS,
                "explain takes {tool: name, params: {…}}",
                "name the tool and the parameters you would call it with",
                rule="parameters",
            )
        caller: Caller = request.user
        now = caller.clock.now()
        key = request.META.get("HTTP_IDEMPOTENCY_KEY")
        answer = door.act(
            replace(caller, pause=None),  # explained, not refused (Spec: modes 29)
            self.called,
            body,
            work=lambda _: dict(explain(caller, name, params, now=now)),
            now=now,
            idempotency_key=None if caller.pause else key,
            is_final=lambda answer: answer.body["error_code"] not in NOT_KEPT,
        )
        return response_of(answer)


class PromptView(ReadView):
    """The system prompt of the caller: its role, its tools and its limits."""

    def get(self, request: Request) -> Response:
        """Write the prompt."""
        return Response({"prompt": prompt.build(request.user)})


class UnknownAddressView(APIView):
    """Any other address below /api/."""

    authentication_classes = ()
    throttle_classes = ()
    default_response_headers: dict[str, str] = {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse every method alike."""
        raise Denied(NOTHING_THERE)


def summarise_pause(pause: PauseFacts) -> PauseSummary:
    """A pause as clients see it."""
    return {
        "reason": pause.reason,
        "since": pause.paused_at,
        "scope": "organisation" if pause.is_everyone else "agent",
        "resumed_by": list(pause.resumed_by),
    }
