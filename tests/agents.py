"""Agents' calls in tests: by Django's test client, on the way that they take in the product."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import Client
from django.test.client import ClientHandler

from nexus_site.serving.errors import is_for_machine
from nexus_site.serving.handlers import ApiHandler


class SiteHandler(ClientHandler):
    """Sends each request on the way that the site sends it.

    An agent's call passes no middleware, which would take a fifth of its time.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._agents = ApiHandler()

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        if has_session or not is_for_machine(request.path_info):
            return super().get_response(request)
        return self._agents.get_response(request)


class AgentsClient(Client):
    """A client for agents' calls."""

    def __init__(self, **defaults: Any) -> None:
        super().__init__(**defaults)
        self.handler = SiteHandler(self.handler.enforce_csrf_checks)
