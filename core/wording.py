"""Texts that are recorded in English and sent to people in their language; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wording:
    """An English sentence, marked with `gettext_noop`, and the values of its placeholders."""

    sentence: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return self.sentence % self.values


Part = str | Wording
"""What somebody wrote, which stays as it is, or a sentence of ours."""
Parts = Part | tuple[Part, ...]


def in_english(parts: Parts) -> str:
    """The text as it is recorded: its parts as paragraphs."""
    return "\n\n".join(str(part) for part in _each(parts))


def as_json(parts: Parts) -> list[Any]:
    """The text to be kept; `in_language` reads it."""
    return [
        part if isinstance(part, str) else [part.sentence, dict(part.values)]
        for part in _each(parts)
    ]


def in_language(kept: list[Any], translate: Callable[[str], str]) -> str:
    """The text that `as_json` kept, each of our sentences translated."""
    return "\n\n".join(
        part if isinstance(part, str) else translate(part[0]) % part[1] for part in kept
    )


def _each(parts: Parts) -> tuple[Part, ...]:
    return parts if isinstance(parts, tuple) else (parts,)
