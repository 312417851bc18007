"""Who acted, as people call them; exports and JSON keep the code (Spec: people 51)."""

from __future__ import annotations

from django.utils.translation import gettext


def actor_name(actor: str) -> str:
    """An agent by its handle, a person by their name, a part of the product as such."""
    kind, colon, name = actor.partition(":")
    if kind == "system" and name:
        return gettext("System (%(part)s)") % {"part": name}
    return name if colon and kind in ("agent", "human") else actor
