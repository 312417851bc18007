"""The API's description for machines and for people; open to all, it says nothing about anybody."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from csp.constants import NONE, SELF
from csp.decorators import csp_replace
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.cache import cache_control
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import condition, require_safe

from toolbox.faces.docs.pages import Description, describe
from toolbox.faces.openapi import document
from toolbox.faces.responses import json_response

ERRORS = "errors"
"""The page of every code; the other pages have the names of groups."""


@dataclass(frozen=True, slots=True)
class SentPage:
    """A page as it is sent."""

    html: str
    etag: str


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """OpenAPI 3.1 (Spec: wire 13)."""
    return json_response(document())


def _etag(request: HttpRequest, name: str = "") -> str:
    return _page(name, get_language() or "en").etag


@require_safe
@gzip_page  # it holds nothing secret, so its size gives nothing away
@csp_replace({"script-src": [SELF], "style-src": [SELF], "img-src": [SELF], "default-src": [NONE]})
@cache_control(no_cache=True)
@condition(etag_func=_etag)
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """A page to read and to try calls on (Spec: wire 13); the one of a group, or of all codes."""
    return HttpResponse(_page(name, get_language() or "en").html)


@cache
def _page(name: str, language: str) -> SentPage:
    """The page in the active language, rendered once for each process. Raises Http404."""
    described = description()
    group = described.group(name)
    if name and group is None and name != ERRORS:
        raise Http404(name)
    html = render_to_string(
        f"toolbox/docs/{'group' if group else name or 'overview'}.html",
        {"description": described, "group": group, "name": name},
    )
    return SentPage(html, f'"{hashlib.sha256(html.encode()).hexdigest()[:32]}"')


@cache
def description() -> Description:
    """The description, as its pages show it."""
    return describe(document())
