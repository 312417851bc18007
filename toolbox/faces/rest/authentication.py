"""REST authentication: from a bearer key to the Caller, and the agent's rate limit."""

from __future__ import annotations

import uuid

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from core.decision import Code, Denied
from toolbox.authentication import authenticate
from toolbox.caller import Caller


class AgentKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>`; `request.user` is the Caller.

    The query that finds the key also takes from the agent's token bucket. Where that is empty there
    is no caller, and `request.auth` holds the refusal for the throttle.
    """

    def authenticate(self, request: Request) -> tuple[Caller | None, Denied | None]:
        """Return the caller. Raises Denied."""
        sent = request._request  # noqa: SLF001  a third of the time that its proxy takes
        try:
            caller = authenticate(
                authorization=sent.META.get("HTTP_AUTHORIZATION", ""),
                session_id=sent.META.get("HTTP_X_NEXUS_SESSION"),
                request_id=getattr(sent, "request_id", "") or uuid.uuid4().hex,
            )
        except Denied as refusal:
            if refusal.deny.code is Code.RATE_LIMITED:
                return None, refusal
            raise
        return caller, None

    def authenticate_header(self, request: Request) -> str:
        """The scheme that a 401 names."""
        return "Bearer"


class TokenBucketThrottle(BaseThrottle):
    """Refuses the calls that found their agent's token bucket empty."""

    def allow_request(self, request: Request, view: object) -> bool:
        """Raise Denied RATE_LIMITED, which says how long to wait."""
        if request.auth is not None:
            raise request.auth
        return True
