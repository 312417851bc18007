"""Sentences taken apart by the patterns that they were built from; pure.

A pattern has `%(name)s` where the sentence has a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

PLACE = re.compile(r"%\((\w+)\)s")
REFERENCE = re.compile(r" \((?:s|S)pec: ([^()]*)\)$")


def without_reference(sentence: str) -> str:
    """A rule's name without the place in the specification that ends it."""
    return REFERENCE.sub("", sentence)


def reference_of(sentence: str) -> str:
    """The place in the specification that ends a rule's name, such as `tasks 24`; '' if none."""
    found = REFERENCE.search(sentence)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, ready to be compared with sentences.

    Not a regular expression: sentences hold words of agents, which could make it try every way
    there is. Here each literal is looked for once, from the left.
    """

    text: str
    literals: tuple[str, ...]
    names: tuple[str, ...]
    single: frozenset[str]
    letters: int

    @classmethod
    def of(cls, text: str, *, single: Collection[str] = ()) -> Pattern:
        """Take a pattern apart. Values named in `single` are one word; others may be anything."""
        parts = PLACE.split(text)
        literals = tuple(part.replace("%%", "%") for part in parts[::2])
        letters = len(re.findall(r"\w", "".join(literals)))
        return cls(text, literals, tuple(parts[1::2]), frozenset(single), letters)

    def values_in(self, sentence: str) -> dict[str, str] | None:
        """What the sentence has in the places of the pattern; None if it does not fit.

        A value ends before the first occurrence of the literal after it.
        """
        first, last = self.literals[0], self.literals[-1]
        if not self.names:
            return {} if sentence == first else None
        if not (sentence.startswith(first) and sentence.endswith(last)):
            return None
        found: dict[str, str] = {}
        begin, end = len(first), len(sentence) - len(last)
        for place, name in enumerate(self.names, 1):
            literal = self.literals[place]
            if place == len(self.names):
                stop = end
            elif name in found:
                stop = begin + len(found[name])
            else:
                stop = sentence.find(literal, begin, end)
            value = sentence[begin:stop]
            if not begin <= stop <= end or not self._fits(name, value, found):
                return None
            if not sentence.startswith(literal, stop):
                return None
            found[name] = value
            begin = stop + len(literal)
        return found

    def _fits(self, name: str, value: str, found: Mapping[str, str]) -> bool:
        is_one_word = bool(value) and not any(map(str.isspace, value))
        return found.get(name, value) == value and (name not in self.single or is_one_word)


def most_literal_first(patterns: Iterable[Pattern]) -> list[Pattern]:
    """In the order in which they are tried: of two that fit, the one that says more is meant."""
    return sorted(patterns, key=lambda each: (-each.letters, each.text))
