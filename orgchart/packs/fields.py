"""Reading one mapping of a pack key by key: each value typed, each problem noted with its line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orgchart.packs.problems import Notes
from orgchart.policy.vocabulary import HANDLE_FORM, HANDLE_MEANT

TEXT, INT, FLOAT, BOOL, NULL = (
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")
)
MAP = "tag:yaml.org,2002:map"
TRUE = frozenset({"true", "yes", "on"})
DECIMAL = re.compile(r"[+-]?[0-9]{1,15}\Z")
REAL = re.compile(r"-?[0-9]{1,17}\.[0-9]*([eE][+-][0-9]{1,3})?\Z")
LONG_TEXT = 200_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
Choice = TypeVar("Choice", bound=StrEnum)


def line_of(node: Node) -> int:
    """The line a node begins on, from 1."""
    return int(node.start_mark.line) + 1


def suggest(word: str, known: Collection[str]) -> str:
    """How to correct a name that is not among those known."""
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if not known:
        return "there is none yet"
    names = sorted(known)
    return f"there are {', '.join(names[:20])}{', …' if len(names) > 20 else ''}"


def problem_of_name(value: str, known: Collection[str] | None, what: str) -> tuple[str, str] | None:
    """Why a value is no name, or none of those known, with how to correct it; None where it is."""
    if known is not None and value not in known:
        return f"there is no {what} {value!r}", suggest(value, known)
    if known is None and not re.match(HANDLE_FORM, value):
        return f"the {what} {value!r} is no name", HANDLE_MEANT
    return None


class Section:
    """A mapping of a pack file. What is wrong is noted; a harmless value replaces it."""

    def __init__(self, node: MappingNode, file: str, notes: Notes) -> None:
        self.file = file
        self.notes = notes
        self.line = line_of(node)
        self._values: dict[str, tuple[int, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag != TEXT:
                self.note(line_of(key), "a key must be text", "put it in quotes or correct it")
            elif key.value in self._values:
                self.note(
                    line_of(key),
                    f"{key.value} is set twice (first on line {self._values[key.value][0]})",
                    "keep one of the two",
                )
            else:
                self._values[key.value] = (line_of(key), value)

    def note(self, line: int, message: str, fix: str) -> None:
        """Note a problem of this file."""
        self.notes.add(self.file, line, message, fix)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def line_of(self, key: str) -> int:
        """The line of a key, or of the section where the key is absent."""
        return self._values[key][0] if key in self._values else self.line

    def allow(self, *keys: str, required: Collection[str] = ()) -> Section:
        """Note every key that is none of these, and every required one that is absent."""
        for key in self._values:
            if key not in keys:
                self.note(self.line_of(key), f"unknown key {key}", suggest(key, keys))
        for key in required:
            if key not in self._values:
                self.note(self.line, f"{key} is missing", f"add `{key}: …`")
        return self

    def text(self, key: str, *, longest: int = LONG_TEXT, empty: bool = True) -> str:
        """A text, '' where absent."""
        if key not in self._values:
            return ""
        value = self._text(key, self._values[key][1], longest)
        if value is not None and not value.strip() and not empty:
            self.note(self.line_of(key), f"{key} is empty", f"give the {key}")
        return value or ""

    def _text(self, key: str, node: Node, longest: int) -> str | None:
        line = line_of(node)
        if not isinstance(node, ScalarNode) or node.tag != TEXT:
            self.note(
                line, f"{key} must be text, this is {kind_of(node)}", "put it in quotes if it is"
            )
            return None
        value = str(node.value)
        if len(value) > longest:
            self.note(line, f"{key} is longer than {longest} characters", "shorten it")
            return None
        if UNSTORABLE.search(value):
            self.note(line, f"{key} holds a character that cannot be stored", "remove it")
            return None
        return value

    def is_text(self, key: str) -> bool:
        """Whether the value of a key is text rather than a list or a mapping."""
        return key in self._values and self._values[key][1].tag == TEXT

    def is_list(self, key: str) -> bool:
        """Whether the value of a key is a list."""
        return key in self._values and isinstance(self._values[key][1], SequenceNode)

    def is_flag(self, key: str) -> bool:
        """Whether the value of a key is true or false."""
        return key in self._values and self._values[key][1].tag == BOOL

    def kind(self, key: str) -> str:
        """What the value of a key is, in words; the key must be there."""
        return kind_of(self._values[key][1])

    def name(
        self, key: str, *, known: Collection[str] | None = None, what: str = "", longest: int = 64
    ) -> str:
        """A name in the form of a handle; with `known`, one of those (`what` says of what)."""
        value = self.text(key, longest=longest, empty=False)
        if not value.strip():
            return ""
        return value if self.is_name(value, self.line_of(key), known, what or key) else ""

    def is_name(self, value: str, line: int, known: Collection[str] | None, what: str) -> bool:
        """Whether a value has the form of a name and is known; notes it where not."""
        problem = problem_of_name(value, known, what)
        if problem:
            self.note(line, *problem)
        return not problem

    def names(
        self, key: str, *, known: Collection[str] | None = None, what: str = ""
    ) -> tuple[str, ...]:
        """A list of names, each checked like `name`."""
        return tuple(
            value
            for line, value in self.items(key, longest=64)
            if self.is_name(value, line, known, what or key)
        )

    def texts(self, key: str, *, longest: int = 200) -> tuple[str, ...]:
        """A list of texts, () where absent."""
        return tuple(value for _, value in self.items(key, longest=longest))

    def items(self, key: str, *, longest: int) -> Iterator[tuple[int, str]]:
        """The texts of a list with their lines; notes what is none, is empty or comes twice."""
        seen: set[str] = set()
        for node in self.nodes(key):
            value = self._text(f"each of {key}", node, longest)
            if value is None:
                continue
            if not value.strip() or value in seen:
                twice = "is there twice" if value.strip() else "is empty"
                self.note(line_of(node), f"{value!r} in {key} {twice}", "remove it")
                continue
            seen.add(value)
            yield line_of(node), value

    def nodes(self, key: str) -> list[Node]:
        """The nodes of a list, [] where absent."""
        if key not in self._values:
            return []
        line, node = self._values[key]
        if not isinstance(node, SequenceNode):
            self.note(line, f"{key} must be a list, this is {kind_of(node)}", "write [a, b]")
            return []
        return list(node.value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        if key not in self._values:
            return default
        line, node = self._values[key]
        if not isinstance(node, ScalarNode) or node.tag != BOOL:
            self.note(
                line, f"{key} must be true or false, this is {kind_of(node)}", "write one of them"
            )
            return default
        return str(node.value).lower() in TRUE

    def number(self, key: str, *, low: int, high: int) -> int:
        """A whole number in a range; `low` where it is absent or wrong."""
        if key not in self._values:
            return low
        line, node = self._values[key]
        if isinstance(node, ScalarNode) and node.tag == INT and DECIMAL.match(node.value):
            value = int(node.value)
            if low <= value <= high:
                return value
        self.note(line, f"{key} must be a whole number from {low} to {high}", "correct it")
        return low

    def choice(self, key: str, choices: type[Choice], default: Choice) -> Choice:
        """One of a closed set."""
        value = self.text(key)
        known = [choice.value for choice in choices]
        if not value:
            return default
        if value not in known:
            self.note(self.line_of(key), f"{key} cannot be {value!r}", suggest(value, known))
            return default
        return choices(value)

    def section(self, key: str) -> Section | None:
        """The mapping below a key, None where absent or none."""
        if key not in self._values:
            return None
        line, node = self._values[key]
        return self.as_section(key, node, line)

    def as_section(self, key: str, node: Node, line: int) -> Section | None:
        """A node as a mapping; notes it where it is none."""
        if not isinstance(node, MappingNode):
            self.note(line, f"{key} must hold `key: value`, this is {kind_of(node)}", "correct it")
            return None
        return Section(node, self.file, self.notes)

    def of_pairs(self, key: str, pairs: list[tuple[Node, Node]]) -> Section:
        """The mapping that a key means where it is written in another form."""
        mark = self._values[key][1].start_mark
        return Section(MappingNode(MAP, pairs, mark, mark), self.file, self.notes)

    def sections(self, key: str) -> Iterator[Section]:
        """The mappings of a list."""
        for node in self.nodes(key):
            section = self.as_section(f"each of {key}", node, line_of(node))
            if section is not None:
                yield section

    def value(self, key: str) -> Any:
        """Any JSON value: what settings hold."""
        return self._plain(key, self._values[key][1])

    def _plain(self, key: str, node: Node) -> Any:
        if isinstance(node, SequenceNode):
            return [self._plain(key, item) for item in node.value]
        if isinstance(node, MappingNode):
            inner = Section(node, self.file, self.notes)
            return {name: inner.value(name) for name in inner}
        if node.tag == BOOL:
            return str(node.value).lower() in TRUE
        if node.tag == INT and DECIMAL.match(node.value):
            return int(node.value)
        if node.tag == FLOAT and REAL.match(node.value):
            return float(node.value)
        return None if node.tag == NULL else self._text(key, node, LONG_TEXT)


def kind_of(node: Node) -> str:
    """What a node is, in words."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    kinds = {TEXT: "text", INT: "a number", FLOAT: "a number", BOOL: "true or false"}
    return kinds.get(node.tag, "empty" if node.tag == NULL else "a date or another special value")
