"""The API's description for machines and for people; open to all, it says nothing about anybody."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from csp.constants import NONE, SELF
from csp.decorators import csp_replace
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe
from django.views.decorators.vary import vary_on_headers
from pydantic_core import to_json

from toolbox.faces.docs.pages import Description, describe
from toolbox.faces.openapi import document

ERRORS = "errors"
"""The page of every code; the other pages have the names of groups."""
ACCEPTS_GZIP: Callable[[str], object] = re.compile(r"\bgzip\b").search


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer as it is sent: strangers ask for it, so no request makes or packs it anew."""

    content: bytes
    packed: bytes
    content_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, content_type: str) -> Prepared:
        """Pack it, once for each process."""
        etag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'  # weak: of both its forms
        return cls(content, gzip.compress(content), content_type, etag)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Packed for who can read that: it holds nothing secret, so its size gives none away."""
        if not ACCEPTS_GZIP(request.headers.get("Accept-Encoding", "")):
            return HttpResponse(self.content, content_type=self.content_type)
        packed = {"Content-Encoding": "gzip"}
        return HttpResponse(self.packed, content_type=self.content_type, headers=packed)


def _etag_of_schema(request: HttpRequest) -> str:
    return _schema().etag


@require_safe
@vary_on_headers("Accept-Encoding")
@cache_control(no_cache=True)
@condition(etag_func=_etag_of_schema)
def schema(request: HttpRequest) -> HttpResponse:
    """OpenAPI 3.1 (Spec: wire 13)."""
    return _schema().answer(request)


@cache
def _schema() -> Prepared:
    return Prepared.of(to_json(document()), "application/json")


def _etag(request: HttpRequest, name: str = "") -> str:
    return _page(name, get_language() or "en").etag


@require_safe
@vary_on_headers("Accept-Encoding")
@csp_replace({"script-src": [SELF], "style-src": [SELF], "img-src": [SELF], "default-src": [NONE]})
@cache_control(no_cache=True)
@condition(etag_func=_etag)
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """A page to read and to try calls on (Spec: wire 13); the one of a group, or of all codes."""
    return _page(name, get_language() or "en").answer(request)


@cache
def _page(name: str, language: str) -> Prepared:
    """The page in the active language, rendered once for each process. Raises Http404."""
    described = description()
    group = described.group(name)
    if name and group is None and name != ERRORS:
        raise Http404(name)
    html = render_to_string(
        f"toolbox/docs/{'group' if group else name or 'overview'}.html",
        {"description": described, "group": group, "name": name},
    )
    return Prepared.of(html.encode(), "text/html; charset=utf-8")


@cache
def description() -> Description:
    """The description, as its pages show it."""
    return describe(document())
