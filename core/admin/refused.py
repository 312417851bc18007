"""Refusals as people read them, in the language of the page (Spec: people 46)."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from django.forms import Form
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core.admin.sentences import in_language, is_english
from core.decision import Deny
from core.events import EventOutcome, text
from core.people import record_refused_person
from core.refusals import MEANINGS


class Happened(Protocol):
    """What pages show of an event of the ledger."""

    decision: str
    reason: str


def meaning_of(code: str) -> str:
    """What a code says in the language of the page; '' where it is no code of a refusal."""
    return gettext(MEANINGS[code]) if code in MEANINGS else ""


def coded(code: str) -> SafeString | str:
    """The meaning of a code, with the code in small print; the code alone where it has none."""
    meaning = meaning_of(code)
    if not meaning:
        return code
    return format_html('{} <code class="nx-code">{}</code>', meaning, code)


def said(sentence: str) -> SafeString | str:
    """One sentence of a rule in the language of the page.

    What the catalogue does not know is the sentence itself, marked as English.
    """
    if not sentence or is_english():
        return sentence
    known = in_language(sentence)
    return format_html('<span lang="en">{}</span>', sentence) if known is None else known


def said_as_text(sentence: str) -> str:
    """The same as plain text."""
    return in_language(sentence) or sentence


def reason_of(event: Happened) -> SafeString | str:
    """Why something happened: of a refusal its sentence, else what people and agents wrote."""
    return said(event.reason) if event.decision == EventOutcome.DENY else event.reason


def shortened(sentence: str, longest: int) -> SafeString | str:
    """The beginning of a sentence for a list; names and codes in it may be cut, so it is data."""
    if len(sentence) <= longest:
        return sentence
    return format_html('<span translate="no">{}…</span>', text(sentence, longest - 1).rstrip("…"))


def reason_as_text(event: Happened) -> str:
    """The same as plain text."""
    return said_as_text(event.reason) if event.decision == EventOutcome.DENY else event.reason


def refused(deny: Deny) -> SafeString | str:
    """The refusal's sentences; where they are not known, what its code means, then the English."""
    known = _sentence(deny)
    if known is not None:
        return known
    return format_html(
        '{} <small class="nx-original" lang="en">{}</small>', _stop(deny), deny.sentence
    )


def refuse_on_form(
    request: HttpRequest,
    form: Form,
    deny: Deny,
    *,
    subject: str,
    now: datetime,
    organisation_id: int | None = None,
) -> None:
    """Show a refusal on the form that asked, and record it."""
    record_refused_person(request, deny, subject=subject, now=now, organisation_id=organisation_id)
    form.add_error(None, refused(deny))


def refused_as_text(deny: Deny) -> str:
    """The same as plain text."""
    known = _sentence(deny)
    return f"{_stop(deny)} ({deny.sentence})" if known is None else known


def _sentence(deny: Deny) -> str | None:
    if is_english():
        return deny.sentence
    parts = [in_language(part) for part in (deny.message, deny.next_action) if part]
    ended = [gettext("%(sentence)s.") % {"sentence": part.rstrip("。")} for part in parts if part]
    return "".join(ended) if len(ended) == len(parts) else None


def _stop(deny: Deny) -> str:
    return gettext("%(sentence)s.") % {"sentence": meaning_of(deny.code)}
