"""What the REST API reads and writes: strict JSON; for a person with a browser a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from django.conf import settings
from django.contrib import admin
from django.http.request import UnreadablePostError
from pydantic_core import to_json
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, BrowsableAPIRenderer
from rest_framework.request import Request

from core.decision import Code, refuse
from core.strictjson import read_object
from toolbox.gate import require_size
from toolbox.registry import REGISTRY


class StrictJSONParser(BaseParser):
    """One JSON object within the limits of `core.strictjson` and of the tool's own size."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Read the body. Raises Denied: TOO_LARGE, INVALID_PARAMS."""
        name = (parser_context or {}).get("kwargs", {}).get("name", "")
        tool = REGISTRY.get(name)
        limit = tool.largest_body if tool else settings.NEXUS_MAX_BODY
        try:
            body = stream.read(limit + 1)
        except UnreadablePostError as problem:
            raise refuse(
                Code.INVALID_PARAMS, "the body could not be read", "send it again whole"
            ) from problem
        require_size(len(body), limit, what=f"a body of {name}" if tool else "a body")
        kind = (media_type or "").partition(";")[0].strip().lower()
        if body and kind not in (self.media_type, ""):
            raise refuse(
                Code.INVALID_PARAMS,
                f"Content-Type {kind[:64]!r} is not read here",
                "send a JSON object as application/json",
                rule="content type",
            )
        return read_object(body)


class JSONRenderer(BaseRenderer):
    """JSON bytes of results that pydantic can serialise."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Serialise the body of an answer."""
        indent = renderer_context.get("indent") if renderer_context else None
        return to_json(data, indent=indent)


class PersonRenderer(BrowsableAPIRenderer):
    """The browsable page, without a form: a person has no key, so can read and change nothing."""

    template = "toolbox/browsable.html"

    def get_context(
        self, data: Any, accepted_media_type: str, renderer_context: dict[str, Any]
    ) -> dict[str, Any]:
        """Show the person who is signed in; the call itself has no caller."""
        request = renderer_context["request"]
        request.user = person_of(request)
        context: dict[str, Any] = super().get_context(data, accepted_media_type, renderer_context)
        return {**context, "code_style": "", "display_edit_forms": False}

    def show_form_for_method(self, view: Any, method: str, request: Request, obj: Any) -> bool:
        """Offer no form."""
        return False

    def get_breadcrumbs(self, request: Request) -> list[tuple[str, str]]:
        """Name no other page."""
        return []


class FixedNegotiation(BaseContentNegotiation):
    """Negotiates nothing: the answer is JSON; a page only for a signed-in person's browser."""

    def select_renderer(
        self,
        request: Request,
        renderers: Sequence[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        """The last renderer for a person, else the first."""
        renderer = renderers[-1 if len(renderers) > 1 and is_browsed(request) else 0]
        return renderer, str(renderer.media_type)


def is_browsed(request: Request) -> bool:
    """Whether a member of staff looks at the API with a browser. An agent's key decides first."""
    meta = request.META
    return (
        request.method == "GET"
        and "HTTP_AUTHORIZATION" not in meta
        and "text/html" in meta.get("HTTP_ACCEPT", "")
        and hasattr(person_of(request), "is_staff")
        and admin.site.has_permission(request._request)  # noqa: SLF001  Django's own request
    )


def person_of(request: Request) -> Any:
    """Who is signed in by Django's session, if the request passed that middleware."""
    return getattr(request._request, "user", None)  # noqa: SLF001  as above
