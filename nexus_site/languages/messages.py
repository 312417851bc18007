"""What is to be translated: found in Python, in templates and in the names of models."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import django
import unfold
from django.apps import apps
from django.conf import settings
from django.utils.translation.template import templatize

from core.admin.sentences import CONTEXT
from nexus_site.languages.names import names_of_models
from nexus_site.languages.scripts import script_texts
from nexus_site.languages.sentences import sentences_under

PLAIN = ("_", "gettext", "gettext_lazy", "gettext_noop")
COUNTED = ("ngettext", "ngettext_lazy")
IN_CONTEXT = ("pgettext", "pgettext_lazy")
COUNTED_IN_CONTEXT = ("npgettext", "npgettext_lazy")
WORDS = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
CALL = re.compile(rf"\b(_|n?p?gettext)\(\s*({WORDS}(?:\s*,\s*{WORDS})*)", re.DOTALL)
OURS = [*settings.ROOMS, "core", "nexus_site", "templates"]
SKIPPED = frozenset({"migrations", "run", "management"})
"""Folders whose texts are for who operates the installation, in English like its log."""


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """One text to translate: its singular, its plural and its context if it has them."""

    singular: str
    plural: str = ""
    context: str = ""

    @property
    def key(self) -> str:
        """How compiled catalogues name it."""
        return f"{self.context}\x04{self.singular}" if self.context else self.singular

    @property
    def name(self) -> str:
        """What files of translations call it: `context|singular`, or the singular alone."""
        return f"{self.context}|{self.singular}" if self.context else self.singular


def messages_of_python(source: str) -> Iterator[Message]:
    """The texts that a module marks; calls with anything but literals look up marked texts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield from _message(name, [each for each in words if isinstance(each, str)])


def messages_of_template(source: str) -> Iterator[Message]:
    """The texts that a template marks."""
    for name, words in CALL.findall(templatize(source)):
        yield from _message(name, [ast.literal_eval(each) for each in re.findall(WORDS, words)])


def _message(name: str, words: list[str]) -> Iterator[Message]:
    match words:
        case [text, *_] if name in PLAIN and text:
            yield Message(text)
        case [one, many, *_] if name in COUNTED:
            yield Message(one, many)
        case [context, text, *_] if name in IN_CONTEXT:
            yield Message(text, context=context)
        case [context, one, many, *_] if name in COUNTED_IN_CONTEXT:
            yield Message(one, many, context)


def messages_under(folder: Path) -> set[Message]:
    """The texts of every module and template in a folder."""
    found: set[Message] = set()
    for file in folder.rglob("*"):
        if SKIPPED.isdisjoint(file.relative_to(folder).parts):
            if file.suffix == ".py":
                found.update(messages_of_python(file.read_text()))
            elif file.suffix == ".html":
                found.update(messages_of_template(file.read_text()))
    return found


@cache  # a process reads all sources once
def our_messages() -> frozenset[Message]:
    """Everything that NEXUS shows to people."""
    folders = [settings.BASE_DIR / room for room in OURS]
    marked = set().union(*(messages_under(folder) for folder in folders))
    rooms = [folder for folder in folders if folder.name != "templates"]
    built = {Message(text, context=CONTEXT) for text in sentences_under(rooms, SKIPPED)}
    named = {Message(text) for text in names_of_models() | script_texts()}
    return frozenset(marked | built | named)


@cache
def theme_messages() -> frozenset[Message]:
    """What the theme shows; it comes without catalogues."""
    return frozenset(messages_under(Path(unfold.__file__).parent))


def translated_by_libraries(locale: str) -> set[str]:
    """Texts that Django and other libraries have a translation of."""
    folders = [Path(django.__file__).parent / "conf" / "locale"]
    folders += [Path(config.path) / "locale" for config in apps.get_app_configs()]
    found: set[str] = set()
    for folder in folders:
        catalogue = gettext.translation("django", folder, [locale], fallback=True)
        known = getattr(catalogue, "_catalog", {})
        found.update(
            key[0] if isinstance(key, tuple) else key for key, text in known.items() if text
        )
    return found
