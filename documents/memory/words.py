"""What a search looks for: English words by PostgreSQL, Chinese by pairs of characters; pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

RUN = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that put no spaces between words: Han, kana, hangul."""

MAX_PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class Words:
    """A text taken apart: what is left for a language with spaces, and the lexemes of the rest."""

    spaced: str
    lexemes: tuple[str, ...]


def words_of(text: str) -> Words:
    """A text as it is stored for searching: each character and each pair of neighbours."""
    normal = unicodedata.normalize("NFKC", text)
    found: dict[str, None] = {}
    for run in RUN.findall(normal):
        found |= dict.fromkeys(run)
        found |= dict.fromkeys(run[i : i + 2] for i in range(len(run) - 1))
    return Words(RUN.sub(" ", normal), tuple(found)[:MAX_PAIRS])


@dataclass(frozen=True, slots=True)
class Asked:
    """One way in which an entry can match: all of this holds.

    `spaced` is for `websearch_to_tsquery`, `lexemes` the text of a tsquery; a text must hold each
    of `has` and none of `lacks`, letter by letter.
    """

    spaced: str
    lexemes: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


TERM = re.compile(r'((?:-\s*)*)(?:"([^"]*)"?|([^\s"-][^\s"]*))')
ANYTHING = "!' '"
"""A tsquery that every entry matches: no word is a space."""


def asked_for(query: str) -> tuple[Asked, ...]:
    """A query as on the web, taken apart: one of these must hold.

    `or` parts alternatives; in each, all terms must be found, those after `-` must not, and what is
    in quotes stands as it is. Without Chinese PostgreSQL reads the whole by the same rules.
    """
    normal = unicodedata.normalize("NFKC", query)
    if not RUN.search(normal):
        return (Asked(normal, ""),)
    ways: list[list[tuple[str, str, str]]] = [[]]
    terms = TERM.findall(normal)
    for i, term in enumerate(terms):
        if not _is_or(term):
            ways[-1].append(term)
        elif ways[-1] and i + 1 < len(terms):
            ways.append([])
    return tuple(_all_of(terms) for terms in ways)


def _is_or(term: tuple[str, str, str]) -> bool:
    dashes, _, word = term
    return not dashes and word.lower() == "or"


def _all_of(terms: list[tuple[str, str, str]]) -> Asked:
    spaced: list[str] = []
    lexemes: list[str] = []
    has: list[str] = []
    lacks: list[str] = []
    for dashes, quoted, word in terms:
        text, denied = " ".join((quoted or word).split()), dashes.count("-") % 2 == 1
        rest = RUN.sub(" ", text)
        mixed = any(char.isalnum() for char in rest)
        if not text:
            continue
        if not RUN.search(text):
            spaced.append(f'{"-" * denied}"{text}"' if quoted else "-" * denied + text)
        elif denied and (quoted or mixed):
            lacks.append(text)
            lexemes.append(ANYTHING)
        elif denied:
            lexemes.append(f"!({pairs_of(text)})")
        else:
            lexemes.append(pairs_of(text))
            spaced += [f'"{part}"' for part in rest.split()]
            has += [text] if quoted else []
    return Asked(" ".join(spaced), " & ".join(lexemes), tuple(has), tuple(lacks))


def pairs_of(text: str) -> str:
    """The text of a tsquery that asks for all neighbouring pairs, or for a character that is alone.

    What it names holds no quote and no operator.
    """
    found: dict[str, None] = {}
    for run in RUN.findall(text):
        found |= dict.fromkeys([run[i : i + 2] for i in range(len(run) - 1)] or [run])
    return " & ".join(f"'{lexeme}'" for lexeme in found)
