"""Two ways into Django: people pass the whole middleware, agents' calls only what they need."""

from typing import Any

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.utils.module_loading import import_string


class PeopleHandler(BaseHandler):
    """Django with its whole middleware."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()


class ApiHandler(PeopleHandler):
    """Django without sessions, cookies, messages and languages, none of which an agent has."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's signature
        """Build the chain of API_MIDDLEWARE (Django builds that of MIDDLEWARE)."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        handler = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined]
        for path in reversed(settings.API_MIDDLEWARE):
            handler = convert_exception_to_response(import_string(path)(handler))
        self._middleware_chain = handler
