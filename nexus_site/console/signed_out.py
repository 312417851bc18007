"""What a person typed in a form that they sent after their session ended (Spec: people 69)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from nexus_site.console.visible import show_controls

View = Callable[..., HttpResponseBase]

NOT_TYPED = re.compile(r"^_|password|csrf|token|code|digest|number|version")
"""Fields that the page fills in, and secrets."""
WORTH_KEEPING = 20
"""Characters of a text that a person would miss."""


def keep_typed(view: View) -> View:
    """The same view; who has typed a text and is signed out is shown it, to be copied."""

    @wraps(view)
    def kept(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated:
            typed = _typed(request)
            if typed:
                page = render(
                    request, "signed_out.html", {"typed": typed}, status=HTTPStatus.FORBIDDEN
                )
                page.headers["Cache-Control"] = "no-store"
                return show_controls(page)
        return view(request, *args, **kwargs)

    return kept


def _typed(request: HttpRequest) -> list[str]:
    sent = ((name, value) for name, values in request.POST.lists() for value in values)
    return [
        value
        for name, value in sent
        if len(value.strip()) >= WORTH_KEEPING and not NOT_TYPED.search(name)
    ]
