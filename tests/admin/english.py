"""Finds the English that a person reads on a page in another language."""

import re
from functools import lru_cache
from html.parser import HTMLParser

from django.apps import apps
from django.db.models import BinaryField

READ = ("title", "aria-label", "placeholder", "alt")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
NOT_READ = {"script", "style", "code", "pre", "kbd", "samp", "textarea", "template", "time"}
OF_DATA = {"nx-mono", "nx-chip", "nx-block", "nx-file", "material-symbols-outlined"}
"""Classes of what agents and the installation wrote, and of icons."""
ALLOWED = {
    **dict.fromkeys(("Analyst", "Planner", "Implementer", "Reviewer", "Tester"), "an office"),
    **dict.fromkeys(("Control", "Mac", "Command"), "keys, in a text of Django's"),
    **dict.fromkeys(("today", "yesterday"), "words that a search takes"),
    **dict.fromkeys(("git", "https", "ssh", "Webhook"), "has no other name"),
    **dict.fromkeys(("Model", "Context", "Protocol", "Standard", "Webhooks"), "names of protocols"),
    "constitution": "the name of a pack",
    **dict.fromkeys(("deleted", "completed", "pending"), "a task's state, in a refusal"),
    **dict.fromkeys(("role", "skill", "office"), "where a tool comes from, in a rule"),
    **dict.fromkeys(("praise", "team-lead"), "what an agent asked for, in a refusal"),
    "Prometheus": "a program's name",
    "manual": "a value of a setting",
    "NEXUS": "the product's name",
    "Ctrl": "a key",
    "JSON": "a format",
    "UTC": "a clock",
    "English": "the name of a language is written in it",
}
"""Words that a page may show in any language, and why."""
ENGLISH = re.compile(r"[A-Za-z]?[a-z][a-z'’-]*[a-z]|[A-Z][a-z]+")
CHINESE = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
BORDER = re.compile(rf"(?<={CHINESE})(?=[^\s\u3000-\uffef])|(?<=[^\s\u3000-\uffef])(?={CHINESE})")
COMMAND = re.compile(r"`[^`]+`")
EDGES = " \t\n,;:.!?()[]“”\"'·…<>{}=→#*+|"
NAMES_OF_OURS = {"auth.permission", "contenttypes.contenttype"}
"""Tables that hold the names of deeds and tables, which pages translate."""
LONGEST = 40  # words of a known text that are looked for at once


class Page(HTMLParser):
    """Reads a page as a person does: its texts, and what its elements are called."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.texts = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        foreign = (
            found.get("lang", "zh-hans").lower() != "zh-hans" or found.get("translate") == "no"
        )
        classes = set((found.get("class") or "").split())
        hidden = tag in NOT_READ or foreign or bool(classes & OF_DATA) or self.is_hidden()
        if not hidden:
            self.texts += [found[name] for name in READ if found.get(name)]
            if found.get("type") in ("submit", "button") and found.get("value"):
                self.texts.append(found["value"])
        if tag not in VOID:
            self.open.append((tag, hidden))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if data.strip() and not self.is_hidden():
            self.texts.append(data)

    def is_hidden(self):
        return bool(self.open) and self.open[-1][1]


def known_texts():
    """Every text that the database holds, whole, by line and by item: data, in no language."""
    found = set()
    for model in apps.get_models():
        if model._meta.label_lower in NAMES_OF_OURS:
            continue
        fields = [
            field.attname
            for field in model._meta.concrete_fields
            if not field.choices and not isinstance(field, BinaryField)
        ]
        for row in model._default_manager.values_list(*fields):
            for value in row:
                found |= _texts_in(value)
    return frozenset(found)


def _texts_in(value):
    match value:
        case str():
            return {_plain(part) for part in (value, *value.splitlines()) if part.strip()}
        case dict():
            return set().union(*(_texts_in(each) for pair in value.items() for each in pair))
        case list() | tuple():
            return set().union(*(_texts_in(each) for each in value))
        case _:
            return set()


def _spaced(text):
    """With a space where Chinese meets other writing."""
    return BORDER.sub(" ", text)


def _plain(text):
    return " ".join(_spaced(text).split()).strip(EDGES)


def english_on(html, known=frozenset()):
    """The texts with English words that are no data, each as the page shows it."""
    known = frozenset(known)
    return sorted({" ".join(t.split()) for t in Page(html).texts if has_english(t, known)})


@lru_cache(maxsize=50_000)  # pages say the same things again
def has_english(text, known):
    if _is_cut(text, known):
        return False
    words = _spaced(COMMAND.sub(" ", text)).split()
    while words:
        length = _known_at_start(words, known)
        if not length and ENGLISH.fullmatch(word := words[0].strip(EDGES)) and word not in ALLOWED:
            return True
        del words[: length or 1]
    return False


def _is_cut(text, known):
    text = text.replace("...", "…")  # Django cuts so in Chinese
    start = _plain(text.partition("…")[0])
    return "…" in text and len(start) > 8 and any(each.startswith(start) for each in known)


def _known_at_start(words, known):
    longest = min(LONGEST, len(words))
    return next((n for n in range(longest, 0, -1) if _plain(" ".join(words[:n])) in known), 0)
