"""What templates say in one way: moments of time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core.admin import refused as refusals
from core.admin.actors import actor_shown
from core.admin.happened import happened
from core.admin.refused import coded, meaning_of, refused, said
from core.admin.units import duration
from core.detail_words import MODES
from core.wording import Part
from governance.cases.wording import case_words
from ledger.models import Event
from nexus_site.console.empty_lists import WHEN_EMPTY
from nexus_site.console.saved_filters import filters_in
from nexus_site.languages.scripts import translated_texts
from orgchart.people.filters import filters_of
from orgchart.people.models import SavedFilter
from orgchart.policy.violation import MEANINGS as INVARIANTS

register = template.Library()


@register.simple_tag
def texts_of_scripts() -> SafeString | str:
    """What the scripts of a page say in its language; nothing where that is English."""
    texts = translated_texts()
    return json_script(texts, "nx-texts") if texts else ""


@register.filter
def in_words(code: str) -> str:
    """What people read for a mode, a state, the code of a refusal or the name of an invariant."""
    text = str(code)
    if meaning := meaning_of(text):
        return meaning
    if text in INVARIANTS:
        return gettext(INVARIANTS[text])
    shown = MODES.get(text, text if text.isupper() else text.replace("_", " "))
    return gettext(shown) if shown else shown


register.filter("refused", refused)


register.filter("case_words", case_words)


register.filter("actor_shown", actor_shown)
register.filter("coded", coded)
register.filter("duration", lambda seconds: duration(round(seconds)))
register.filter("happened", happened)
register.filter("said", said)


@register.simple_tag(takes_context=True)
def reason_of(context: dict[str, Any], event: Event) -> SafeString | str:
    """Why something happened; '' for who may not read what agents write (Spec: people 52)."""
    may_read = context["request"].user.has_perm("ledger.view_event")
    return refusals.reason_of(event) if may_read or not event.actor.startswith("agent:") else ""


@register.filter
def in_language(part: Part) -> str:
    """A sentence of ours with its values, in the language of the page; other texts as they are."""
    return part if isinstance(part, str) else gettext(part.sentence) % part.values


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


@register.simple_tag(takes_context=True)
def kept_filters(context: dict[str, Any], table: Any) -> list[SavedFilter]:
    """The filters that the person keeps of a list, given its `opts`."""
    user = context["request"].user
    return filters_of(person_id=user.pk, table=table.label_lower)


@register.simple_tag(takes_context=True)
def present_filter(context: dict[str, Any]) -> str:
    """The filters that the list shows now, as they are kept; empty without one."""
    return filters_in(context["request"].GET.urlencode())


@register.filter
def when_empty(table: Any) -> str:
    """What an empty list says of what will be there, given its `opts`."""
    return str(WHEN_EMPTY.get(table.label_lower, ""))
