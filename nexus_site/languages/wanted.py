"""Which texts a catalogue has to translate, and which are written alike in every language."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.utils.translation import to_locale

from nexus_site.languages.messages import (
    Message,
    our_messages,
    theme_messages,
    translated_by_libraries,
)

LOCALES = [to_locale(code) for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
SAME = frozenset({"HUMAN_NOTE", "NEXUS", "SHA-256", "sha256", "webhook"})
"""Names and abbreviations without a translation."""


def file_of(locale: str) -> Path:
    """The catalogue's source."""
    return Path(settings.BASE_DIR) / "locale" / locale / "LC_MESSAGES" / "django.po"


def wanted_messages(locale: str) -> set[Message]:
    """Every text that people see and no library translates.

    Of a text with and without a plural the catalogue keeps the one with it: they are one entry.
    """
    known = translated_by_libraries(locale)
    found = {each for each in our_messages() | theme_messages() if each.key not in known}
    counted = {(each.singular, each.context) for each in found if each.plural}
    return {each for each in found if each.plural or (each.singular, each.context) not in counted}
