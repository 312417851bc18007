"""Characters that turn or hide text are shown, not obeyed, on every page of people."""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from core.control_characters import CODES, CONTROLS, show_in_text

FIELD = re.compile(r"<textarea\b.*?</textarea>|\bvalue=\"[^\"]*\"", re.DOTALL)
"""What a form sends back: it keeps its characters, or saving the form would change them."""

IN_JSON = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u(" + b"|".join(b"%04x" % code for code in CODES) + rb")", re.IGNORECASE
)
"""A control as JSON writes it in ASCII."""
KINDS = ("text/html", "application/json")


def show_controls(response: HttpResponseBase) -> HttpResponseBase:
    """Replace each control by its number, in a page that is finished or as soon as it is."""
    if getattr(response, "is_rendered", True):
        return _shown(response)
    response.add_post_render_callback(_shown)  # type: ignore[attr-defined]  # a TemplateResponse
    return response


def _shown(response: HttpResponseBase) -> HttpResponseBase:
    if not isinstance(response, HttpResponse) or response.streaming:
        return response
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind in KINDS:
        text = response.content.decode(response.charset or "utf-8", "replace")
        if CONTROLS.search(text):
            response.content = _visible(text)
    if kind == "application/json":
        response.content = IN_JSON.sub(
            lambda found: found[1] + b"[U+%s]" % found[2].upper(), response.content
        )
    return response


def _visible(text: str) -> str:
    """The text with its controls as numbers, except in the fields of forms."""
    parts = FIELD.split(text)
    fields = [*FIELD.findall(text), ""]
    shown = map(show_in_text, parts)
    return "".join(word for pair in zip(shown, fields, strict=True) for word in pair)
