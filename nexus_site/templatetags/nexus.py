"""What templates say in one way: moments of time."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from nexus_site.languages.scripts import translated_texts

register = template.Library()

WORDS = {"chat_safe": gettext_noop("Messages only"), "coding": gettext_noop("May change code")}
"""What people read for a code; pages show the code in small print."""


@register.simple_tag
def texts_of_scripts() -> SafeString | str:
    """What the scripts of a page say in its language; nothing where that is English."""
    texts = translated_texts()
    return json_script(texts, "nx-texts") if texts else ""


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
