"""Search texts and queries: English by PostgreSQL, Chinese by pairs of characters; pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.storable import MARKS, MOST_MARKS, has_stacked_marks

RUN = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that put no spaces between words: Han, kana, hangul."""

MAX_PAIRS = 20_000
JOINER = "\u034f"
"""It is not shown, and no mark is sorted past it."""


@dataclass(frozen=True, slots=True)
class SearchText:
    """A text split for the index: the part with spaces between words, and lexemes of the rest."""

    spaced: str
    lexemes: tuple[str, ...]


def split_text(text: str) -> SearchText:
    """Split a text for the index: lexemes are each character and each pair of neighbours."""
    normal = unicodedata.normalize("NFKC", text)
    found: dict[str, None] = {}
    for run in RUN.findall(normal):
        found |= dict.fromkeys(run)
        found |= dict.fromkeys(run[i : i + 2] for i in range(len(run) - 1))
    return SearchText(RUN.sub(" ", normal), tuple(found)[:MAX_PAIRS])


@dataclass(frozen=True, slots=True)
class QueryAlternative:
    """One alternative of a query: an entry matches if all of this holds.

    `spaced` is for `websearch_to_tsquery`, `lexemes` is the text of a tsquery. The entry must
    contain each text of `contains` and none of `excludes`, literally.
    """

    spaced: str
    lexemes: str
    contains: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


TERM = re.compile(r'((?:-\s*)*)(?:"([^"]*)"?|([^\s"-][^\s"]*))')
SKIPPED = str.maketrans(dict.fromkeys("!&|()<", " "))
"""Characters that `websearch_to_tsquery` skips."""
DASHES = re.compile(r'(?<![^\s"])-\s*(?:-\s*)+')
"""Several dashes before a word: each denies what the one before it denies."""
ANYTHING = "!' '"
"""A tsquery that every entry matches: no lexeme is a space."""


def with_few_marks(text: str) -> str:
    """The text with a joiner, which is not shown, after each `MOST_MARKS` combining marks in a row.

    Agents cannot write so many; a person's file can hold them.
    """
    return MARKS.sub(_parted, text) if has_stacked_marks(text) else text


def _parted(row: re.Match[str]) -> str:
    marks = row[0]
    return JOINER.join(marks[i : i + MOST_MARKS] for i in range(0, len(marks), MOST_MARKS))


def parse_query(query: str) -> tuple[QueryAlternative, ...]:
    """Parse a web-search query into alternatives, one of which must match.

    `or` separates alternatives. In each, every term must occur, terms after `-` must not, and a
    quoted text occurs literally. Without Chinese, PostgreSQL parses the whole by the same rules.
    """
    normal = unicodedata.normalize("NFKC", query)
    if not RUN.search(normal):
        return (QueryAlternative(_deny_once(normal), ""),)
    alternatives: list[list[tuple[str, str, str]]] = [[]]
    terms = TERM.findall(normal)
    for i, term in enumerate(terms):
        if not _is_or(term):
            alternatives[-1].append(term)
        elif alternatives[-1] and i + 1 < len(terms):
            alternatives.append([])
    return tuple(_all_of(terms) for terms in alternatives)


def _deny_once(spaced: str) -> str:
    """The same web-search query with at most one dash in a row: PostgreSQL fails at some thirty."""
    return DASHES.sub(_one_dash, spaced.translate(SKIPPED))


def _one_dash(dashes: re.Match[str]) -> str:
    return "-" if dashes[0].count("-") % 2 else ""


def _is_or(term: tuple[str, str, str]) -> bool:
    dashes, _, word = term
    return not dashes and word.lower() == "or"


def _all_of(terms: list[tuple[str, str, str]]) -> QueryAlternative:
    spaced: list[str] = []
    lexemes: list[str] = []
    contains: list[str] = []
    excludes: list[str] = []
    for dashes, quoted, word in terms:
        text, denied = " ".join((quoted or word).split()), dashes.count("-") % 2 == 1
        rest = RUN.sub(" ", text)
        mixed = any(char.isalnum() for char in rest)
        if not text:
            continue
        if not RUN.search(text):
            spaced.append(f'{"-" * denied}"{text}"' if quoted else "-" * denied + text)
        elif denied and (quoted or mixed):
            excludes.append(text)
            lexemes.append(ANYTHING)
        elif denied:
            lexemes.append(f"!({pairs_query(text)})")
        else:
            lexemes.append(pairs_query(text))
            spaced += [f'"{part}"' for part in rest.split()]
            contains += [text] if quoted else []
    return QueryAlternative(
        _deny_once(" ".join(spaced)), " & ".join(lexemes), tuple(contains), tuple(excludes)
    )


def pairs_query(text: str) -> str:
    """The text of a tsquery for all neighbouring pairs, or for a single character.

    Its lexemes contain no quote and no operator.
    """
    found: dict[str, None] = {}
    for run in RUN.findall(text):
        found |= dict.fromkeys([run[i : i + 2] for i in range(len(run) - 1)] or [run])
    return " & ".join(f"'{lexeme}'" for lexeme in found)
