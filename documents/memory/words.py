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


def asked_for(query: str) -> Words:
    """A query: of each run of characters all neighbouring pairs, or the one character it is.

    All of the lexemes must be found.
    """
    normal = unicodedata.normalize("NFKC", query)
    found: dict[str, None] = {}
    for run in RUN.findall(normal):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        found |= dict.fromkeys(pairs)
    return Words(RUN.sub(" ", normal), tuple(found))


def tsquery(lexemes: tuple[str, ...]) -> str:
    """The lexemes as the text of a tsquery that asks for all; they hold no quote or operator."""
    return " & ".join(f"'{lexeme}'" for lexeme in lexemes)
