"""Events of the ledger as people read them, in words (Spec: people 51)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core.admin.actors import actor_shown
from core.admin.refused import coded, said
from core.deed_words import DONE
from core.detail_words import LABELS, MODES
from core.event_words import SENTENCES
from core.hooks import Hook
from core.refusals import MEANINGS

SHOWN = 20
"""Items of one list; the record itself has them all."""


fact_in_language = Hook[[str], str]("a fact of a policy in the language of the page")


def sentence_of(action: str) -> str:
    """What happened, in the language of the page; an action of an older release as it is."""
    sentence = SENTENCES.get(action)  # type: ignore[call-overload]  # a StrEnum equals its value
    return gettext(sentence) if sentence else action


def happened(action: str) -> SafeString | str:
    """What happened, with the code in small print."""
    sentence = sentence_of(action)
    if sentence == action:
        return action
    return format_html('{} <code class="nx-code">{}</code>', sentence, action)


def sentences_of_feed() -> Mapping[str, str]:
    """What the live feed's script says for actions and codes of refusals."""
    meanings = {str(code): gettext(meaning) for code, meaning in MEANINGS.items()}
    return {str(action): gettext(said) for action, said in SENTENCES.items()} | meanings


def facts_of(details: Mapping[str, Any]) -> SafeString | str:
    """The details of an event by their names, and the record itself one click away."""
    if not details:
        return ""
    raw = json.dumps(details, indent=2, ensure_ascii=False, sort_keys=True)
    return format_html(
        '{}<details class="nx-raw"><summary>{}</summary><pre class="nx-file" translate="no">{}'
        "</pre></details>",
        _named(details),
        gettext("As it is recorded (JSON)"),
        raw,
    )


def _named(details: Mapping[str, Any]) -> SafeString:
    rows = [(_label(name), _value(name, value)) for name, value in details.items()]
    return format_html(
        '<dl class="nx-facts">{}</dl>',
        format_html_join("", "<dt>{}</dt><dd>{}</dd>", [row for row in rows if row[1] != ""]),
    )


def _label(name: str) -> str:
    words = LABELS.get(name, name.replace("_", " "))
    return gettext(words) if words else ""


def _value(name: str, value: Any) -> SafeString | str:  # noqa: PLR0911  one for each shape
    """One detail; '' where it says nothing."""
    if value in (None, "", [], {}):
        return ""
    match value:
        case bool():
            return gettext("yes") if value else gettext("no")
        case {"before": before, "after": after}:
            return format_html("{} → {}", _word(name, before), _word(name, after))
        case dict():
            return _named(value)
        case [before, after] if name in ("status", "owner"):
            return format_html("{} → {}", _word(name, before), _word(name, after))
        case list():
            return _items(name, value)
        case _:
            return _word(name, value)


def _items(name: str, values: Sequence[Any]) -> SafeString:
    shown = [(_value(name, value),) for value in values[:SHOWN]]
    if (more := len(values) - SHOWN) > 0:
        shown.append((gettext("and %(more)s more") % {"more": more},))
    return format_html('<ul class="nx-list">{}</ul>', format_html_join("", "<li>{}</li>", shown))


def _word(name: str, value: Any) -> SafeString | str:
    text = str(value)
    return WORDS.get(name, _data)(text) if text else "–"


def _state(text: str) -> str:
    return gettext(text.replace("_", " "))


def _right(text: str) -> SafeString:
    return _data(next(iter(fact_in_language(text)), text))


def mode_shown(mode: str) -> SafeString:
    """A mode in words, with the code in small print."""
    return worded(MODES, mode)


def modes_shown(modes: Sequence[str], empty: str = "") -> SafeString | str:
    """Several modes; `empty` is what none says."""
    shown = format_html_join(", ", "{}", ((mode_shown(each),) for each in modes))
    return shown or empty or gettext("none")


def deed_shown(action_taken: str) -> SafeString:
    """What a person did, in words, with the code in small print."""
    return worded(DONE, action_taken)


def worded(words: Mapping[str, str], code: str) -> SafeString:
    """What the table says for a code, with the code in small print; else the code alone."""
    if code not in words:
        return _data(code)
    return format_html('{} <code class="nx-code">{}</code>', gettext(words[code]), code)


def _moment(text: str) -> SafeString:
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # of a year beyond those that there are
        return _data(text)
    return format_html(
        '<time class="nx-time" datetime="{}">{} UTC</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%Y-%m-%d %H:%M}",
    )


def _actor(text: str) -> SafeString:
    return format_html("{}", actor_shown(text))


def _data(text: str) -> SafeString:
    return format_html('<span translate="no">{}</span>', text)


WORDS: Mapping[str, Callable[[str], SafeString | str]] = {
    **dict.fromkeys(("state", "from_state", "status"), _state),
    **dict.fromkeys(("why", "next_action", "rule"), said),
    **dict.fromkeys(("allowed", "forbidden"), _right),
    **dict.fromkeys(("due_at", "since", "until"), _moment),
    "mode": mode_shown,
    "action_taken": deed_shown,
    "by": _actor,
    "code": coded,
}
"""How the values of some details are shown; others are data."""
