"""Two ways into Django: people pass the whole middleware, agents' calls only what they need."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core import signals
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, get_resolver

from core.database import give_back_connection
from nexus_site.serving.middleware import Observe

LONGEST_KEPT = 128  # characters of an address whose view is remembered


class PeopleHandler(BaseHandler):
    """Django with its whole middleware."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Answer one request; Django and its packages hear that it begins."""
        signals.request_started.send(sender=type(self), scope=getattr(request, "scope", None))
        return super().get_response(request)

    def end(self, response: HttpResponseBase) -> None:
        """Tell them that its answer is whole; they give the connection back."""
        response.close()


class ApiHandler:
    """Django without middleware, translators and signals, none of which an agent's call needs.

    Views are found by Django's resolver, once for each address; what they raise is answered by
    Django's own handlers of errors.
    """

    def __init__(self) -> None:
        viewed: Any = convert_exception_to_response(_view)
        self.get_response: Any = convert_exception_to_response(Observe(viewed))

    def end(self, response: HttpResponseBase) -> None:
        """Give the connection back to the pool."""
        give_back_connection()


def _view(request: HttpRequest) -> HttpResponseBase:
    find = _find if len(request.path_info) <= LONGEST_KEPT else _find.__wrapped__
    match = find(settings.ROOT_URLCONF, request.path_info)
    request.resolver_match = match
    response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    if isinstance(response, SimpleTemplateResponse):
        response.render()
    return response


@lru_cache(maxsize=512)
def _find(urls: str, path: str) -> ResolverMatch:
    """The view of an address. Raises Resolver404."""
    return get_resolver(urls).resolve(path)
