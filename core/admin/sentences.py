"""The sentences of refusals in the language of the page (Spec: people 46).

They are built in English, kept in the ledger and sent to agents. The catalogue has a translation of
each pattern, so a page takes a sentence apart and puts its values into the translated pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext, pgettext, pgettext_lazy
from django.utils.translation.trans_real import translation

from core.patterns import Pattern, most_literal_first, reference_of, without_reference

CONTEXT = "sentence"
"""What the catalogue calls these texts."""
NAMES = re.compile(r"\S*(?:(?:, | or | and )\S+)*")
FEW = 12
"""A pattern with fewer letters of its own fits too much: its values are names or known texts."""
DEPTH = 3
CODE = re.compile(r"[\w./-]+")
BY_OTHERS = (
    pgettext_lazy("sentence", "%(a)s or %(b)s"),
    pgettext_lazy("sentence", "%(a)s and %(b)s"),
    pgettext_lazy("sentence", "%(a)s and %(b)s more"),
    pgettext_lazy("sentence", "Task #%(a)s"),
    pgettext_lazy("sentence", " (%(a)s only)"),
    pgettext_lazy("sentence", "Extra inputs are not permitted"),
    pgettext_lazy("sentence", "Field required"),
    pgettext_lazy("sentence", "Input should be %(a)s"),
    pgettext_lazy("sentence", "Input should be a valid string"),
    pgettext_lazy("sentence", "Input should be a valid integer"),
    pgettext_lazy("sentence", "Input should be a valid boolean"),
    pgettext_lazy("sentence", "Input should be a valid list"),
    pgettext_lazy("sentence", "Input should be a valid dictionary"),
    pgettext_lazy("sentence", "String should have at least %(a)s character"),
    pgettext_lazy("sentence", "String should have at least %(a)s characters"),
    pgettext_lazy("sentence", "String should have at most %(a)s characters"),
    pgettext_lazy("sentence", "String should match pattern %(a)s"),
    pgettext_lazy("sentence", "List should have at least %(a)s item after validation, not %(b)s"),
    pgettext_lazy("sentence", "Value error, %(a)s"),
)
"""What is too short to be found in the code, and what pydantic says of parameters."""


def is_english() -> bool:
    """Whether the page is in the language of the record."""
    return get_language() in (None, settings.LANGUAGE_CODE)


def in_language(sentence: str) -> str | None:
    """The sentence in the language of the page; None where the catalogue has no pattern of it."""
    if is_english():
        return sentence
    return _in(str(get_language()), sentence, DEPTH)


@dataclass(frozen=True, slots=True)
class _Catalogue:
    whole: frozenset[str]
    patterns: list[Pattern]


@lru_cache(maxsize=4)
def _catalogue(language: str) -> _Catalogue:
    start = f"{CONTEXT}\x04"
    known: Any = translation(language)
    keys = (key for key, _ in known._catalog.items() if isinstance(key, str))  # noqa: SLF001  no public name
    texts = {key.removeprefix(start) for key in keys if key.startswith(start)}
    built = [Pattern.of(text) for text in texts if "%(" in text]
    whole = frozenset(text for text in texts if "%(" not in text)
    return _Catalogue(whole, most_literal_first(built))


@lru_cache(maxsize=20_000)
def _in(language: str, sentence: str, depth: int) -> str | None:
    rule = without_reference(sentence)
    said = _said(language, rule, depth)
    if said is None or rule == sentence:
        return said
    return gettext("%(rule)s (see %(place)s)") % {"rule": said, "place": reference_of(sentence)}


def _said(language: str, sentence: str, depth: int) -> str | None:
    if "_" in sentence and CODE.fullmatch(sentence):
        return sentence
    catalogue = _catalogue(language)
    if sentence.replace("%", "%%") in catalogue.whole:
        return pgettext(CONTEXT, sentence.replace("%", "%%")).replace("%%", "%")
    for pattern in catalogue.patterns:
        values = pattern.values_in(sentence)
        if values is None:
            continue
        shown = {name: _value(language, value, depth) for name, value in values.items()}
        few = pattern.letters < FEW
        if few and any(
            text is None and not NAMES.fullmatch(values[name]) for name, text in shown.items()
        ):
            continue
        filled = {name: text if text is not None else values[name] for name, text in shown.items()}
        return pgettext(CONTEXT, pattern.text) % filled
    return _in_parts(language, sentence, depth)


def _in_parts(language: str, sentence: str, depth: int) -> str | None:
    """What two rules said together: a field and its problem, a fact and its detail, two steps."""
    head, _, tail = sentence.partition(", or ")
    if tail and (first := _value(language, head, depth)):
        second = _value(language, f", or {tail}", depth)
        return first + second if second else None
    head, _, tail = sentence.partition(": ")
    about, problem = (_value(language, part, depth) for part in (head, tail))
    if (about or " " not in head) and (problem or " " not in tail) and (about or problem):
        return gettext("%(field)s: %(problem)s") % {
            "field": about or head,
            "problem": problem or tail,
        }
    return None


def _value(language: str, value: str, depth: int) -> str | None:
    return _in(language, value, depth - 1) if depth and " " in value else None
