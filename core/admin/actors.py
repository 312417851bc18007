"""Who acted, as people call them; exports and JSON keep the code (Spec: people 51)."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext


def actor_name(actor: str) -> str:
    """An agent by its handle, a person by their name, a part of the product as such.

    A person is marked as one: an agent may have the same name.
    """
    kind, colon, name = actor.partition(":")
    if kind == "system" and name:
        return gettext("System (%(part)s)") % {"part": name}
    if kind == "human" and name:
        return gettext("%(name)s (person)") % {"name": name}
    return name if colon and kind in ("agent", "human") else actor


def actor_shown(actor: str) -> SafeString | str:
    """The same for a page: the name of a part of the product is of no language."""
    kind, _, name = actor.partition(":")
    if kind != "system" or not name:
        return actor_name(actor)
    words = gettext("System (%(part)s)") % {"part": "{}"}
    return format_html(words, format_html('<span translate="no">{}</span>', name))
