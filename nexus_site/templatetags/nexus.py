"""What templates say in one way: moments of time."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

register = template.Library()

WORDS = {"chat_safe": gettext_noop("Messages only"), "coding": gettext_noop("May change code")}
"""What people read for a code; pages show the code in small print."""


@register.filter
def in_words(code: str) -> str:
    """What people read for a mode or a state; a reason code stays as it is written."""
    text = str(code)
    shown = WORDS.get(text, text if text.isupper() else text.replace("_", " "))
    return gettext(shown) if shown else shown


@register.filter
def moment(value: datetime | None, style: str = "") -> SafeString | str:
    """A time as `<time>`: UTC in the text, local or relative once the page's script has run.

    `style` "ago" asks for the relative form.
    """
    if value is None:
        return "–"
    at = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" class="nx-time" data-style="{}">{} UTC</time>',
        at.isoformat(timespec="seconds"),
        style,
        f"{at:%Y-%m-%d %H:%M}",
    )
