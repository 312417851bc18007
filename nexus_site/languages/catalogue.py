"""The catalogue of a language: read, completed, written in one form, and what is wrong in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from nexus_site.languages.messages import Message

HEADER = """msgid ""
msgstr ""
"Language: {locale}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {plural}\\n"

"""
PLURAL = {"zh_Hans": "nplurals=1; plural=0;"}
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd%]|\{\w*\}|</?\w+")
TRANSLATED = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
"""Chinese characters and punctuation."""


@dataclass
class Translations:
    """The translations of one language."""

    locale: str
    texts: dict[Message, str] = field(default_factory=dict)
    fuzzy: set[Message] = field(default_factory=set)
    obsolete: set[Message] = field(default_factory=set)

    @classmethod
    def read(cls, file: Path) -> Translations:
        """The catalogue as it is; an empty one where there is no file."""
        made = cls(locale=file.parent.parent.name)
        if not file.exists():
            return made
        catalogue = read_po(BytesIO(file.read_bytes()))
        for entry in catalogue:
            if entry.id:
                text = (
                    entry.string if isinstance(entry.string, str) else "".join(entry.string or ())
                )
                made.texts[_message(entry.id, entry.context)] = text
                made.fuzzy |= {_message(entry.id, entry.context)} if entry.fuzzy else set()
        made.obsolete = {_message(each.id, each.context) for each in catalogue.obsolete.values()}
        return made

    def completed(self, wanted: Iterable[Message]) -> Translations:
        """The same with an entry for each of these texts and for no other."""
        return Translations(self.locale, {each: self.texts.get(each, "") for each in wanted})

    def filled(self, answers: Mapping[str, str]) -> Translations:
        """The same with these translations, named as `Message.name` says."""
        texts = {each: answers.get(each.name, text) for each, text in self.texts.items()}
        return Translations(self.locale, texts)

    def written(self) -> bytes:
        """The file: sorted, one line for each text, without dates or places, easy to merge."""
        catalogue = Catalog(locale=self.locale, charset="utf-8")
        for each, text in self.texts.items():
            if each.plural:
                catalogue.add((each.singular, each.plural), (text,), context=each.context or None)
            else:
                catalogue.add(each.singular, text, context=each.context or None)
        body = BytesIO()
        write_po(body, catalogue, width=0, omit_header=True, sort_output=True, no_location=True)
        header = HEADER.format(locale=self.locale, plural=PLURAL[self.locale])
        return header.encode() + re.sub(rb"(?m)^#, .*\n", b"", body.getvalue())

    def problems(self, wanted: set[Message], same: frozenset[str]) -> Iterator[str]:
        """What a reader would meet: texts without translation, and translations that mislead.

        `same` are texts that are written alike in both languages.
        """
        for each in sorted(wanted | self.texts.keys()):
            text = self.texts.get(each)
            shown = json.dumps(each.singular, ensure_ascii=False)
            if each not in wanted:
                yield f"nothing shows {shown}"
            elif not text:
                yield f"not translated: {shown}"
            elif each in self.fuzzy:
                yield f"fuzzy: {shown}"
            elif not self._is_faithful(each, text):
                yield f"other placeholders or tags: {shown}"
            elif each.singular not in same and not TRANSLATED.search(text):
                yield f"still English: {shown}"
        yield from (f"obsolete: {each.singular}" for each in sorted(self.obsolete))

    @staticmethod
    def _is_faithful(message: Message, text: str) -> bool:
        kept = sorted(PLACEHOLDER.findall(text))
        return kept in [
            sorted(PLACEHOLDER.findall(english)) for english in (message.singular, message.plural)
        ]


def _message(words: str | list[str] | tuple[str, ...], context: str | None) -> Message:
    texts = [words] if isinstance(words, str) else [*words]
    return Message(texts[0], "".join(texts[1:]), context or "")
