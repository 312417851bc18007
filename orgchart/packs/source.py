"""From a YAML file to plain data and the line of each value: no tags, no aliases, no bombs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    NodeEvent,
    ScalarEvent,
)
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orgchart.packs.problems import Notes

BIGGEST = 33_554_432
"""Bytes of a file. What an organisation says takes 20 MB at most (Spec: settings 9), in YAML some
of it more, and agents hire thousands of kinds of workers: what was exported can be loaded.
"""
DEEPEST = 12
MOST_NODES = 300_000
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


TEXT = "tag:yaml.org,2002:str"
TRUE = frozenset({"true", "yes", "on"})
DECIMAL = re.compile(r"[+-]?[0-9]{1,15}\Z")
REAL = re.compile(r"-?[0-9]{1,17}\.[0-9]*([eE][+-][0-9]{1,3})?\Z")
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Special:
    """A YAML value that no file of a pack holds, and what it is in words."""

    kind: str


@dataclass(frozen=True, slots=True)
class PackDocument:
    """The mapping in a file as plain data, and the line of each key and item by its place."""

    file: str
    data: dict[str, Any]
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line(self, *place: str | int) -> int:
        """The line of a place, or of the nearest one around it that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def keys(self, key: str) -> list[str]:
        """The keys of the mapping below a key; none where there is no mapping."""
        below = self.data.get(key)
        return list(below) if isinstance(below, dict) else []


def read_document(
    path: Path, notes: Notes, *, may_say_nothing: bool = False
) -> PackDocument | None:
    """The mapping that a pack file holds, or None with the reason noted."""
    text = _text_of(path, notes)
    if text is not None and may_say_nothing and _says_nothing(text):
        return PackDocument(str(path), {})
    node = None if text is None else mapping_of(text, str(path), notes)
    if node is None:
        return None
    lines: dict[Place, int] = {(): _line(node)}
    return PackDocument(str(path), _mapping(node, (), str(path), lines, notes), lines)


def _says_nothing(text: str) -> bool:
    return all(line.partition("#")[0].strip() in ("", "---") for line in text.splitlines())


def mapping_of(text: str, file: str, notes: Notes) -> MappingNode | None:
    """The mapping that a text holds as plain YAML, or None with the reason noted."""
    try:
        if not _is_plain(text, file, notes):
            return None
        node: Node | None = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        unclosed = "flow" in (error.context or "")  # found at the next line, begun at this one
        mark = error.context_mark if unclosed else error.problem_mark or error.context_mark
        what = f"this is no YAML: {error.problem or error.context}"
        notes.add(file, mark.line + 1 if mark else 1, what, "correct the line")
        return None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        notes.add(file, line, "a character that no text may hold", "remove it")
        return None
    if not isinstance(node, MappingNode):
        line = _line(node) if node else 1
        notes.add(file, line, "the file must hold `key: value` lines", "write them")
        return None
    return node


def _mapping(
    node: MappingNode, place: Place, file: str, lines: dict[Place, int], notes: Notes
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        name, line = key.value, _line(key)
        if not isinstance(key, ScalarNode) or key.tag != TEXT:
            notes.add(file, line, "a key must be text", "put it in quotes or correct it")
        elif name in found:
            first = lines[(*place, name)]
            notes.add(file, line, f"{name} is set twice (first on line {first})", "keep one")
        else:
            lines[(*place, name)] = line
            found[name] = _plain(value, (*place, name), file, lines, notes)
    return found


def _plain(node: Node, place: Place, file: str, lines: dict[Place, int], notes: Notes) -> Any:
    if isinstance(node, MappingNode):
        return _mapping(node, place, file, lines, notes)
    if isinstance(node, SequenceNode):
        lines |= {(*place, index): _line(item) for index, item in enumerate(node.value)}
        return [
            _plain(item, (*place, index), file, lines, notes)
            for index, item in enumerate(node.value)
        ]
    return _scalar(node.tag, str(node.value))


def _scalar(tag: str, text: str) -> Any:
    match tag.rpartition(":")[2]:
        case "str":
            return text
        case "bool":
            return text.lower() in TRUE
        case "null":
            return None
        case "int":
            return int(text) if DECIMAL.match(text) else Special("a number")
        case "float":
            return float(text) if REAL.match(text) else Special("a number")
        case _:
            return Special("a date or another special value")


def kind_of(value: object) -> str:
    """What a value is, in words."""
    if isinstance(value, Special):
        return value.kind
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "empty" if value is None else "a number")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _text_of(path: Path, notes: Notes) -> str | None:
    try:
        if not path.is_file():
            missing = "is no plain file" if path.exists() else "is missing"
            notes.add(str(path), 1, f"this file {missing}", "add it as a plain file")
            return None
        with path.open("rb") as file:
            content = file.read(BIGGEST + 1)
    except OSError as error:
        notes.add(str(path), 1, f"cannot be read: {error.strerror}", "make it readable")
        return None
    if len(content) > BIGGEST:
        notes.add(str(path), 1, f"is larger than {BIGGEST} bytes", "a pack file is a few pages")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        notes.add(str(path), line, "is not UTF-8", "save the file as UTF-8")
        return None


def _is_plain(text: str, file: str, notes: Notes) -> bool:
    """Whether the text is one document without aliases, anchors, tags or deep nesting.

    Read as a stream of events, so that a bomb is refused before anything is built from it.
    """
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        nodes += isinstance(event, NodeEvent)
        documents += isinstance(event, DocumentStartEvent)
        problem = _problem_of(event, depth, nodes, documents)
        if problem:
            notes.add(file, event.start_mark.line + 1 if event.start_mark else 1, *problem)
            return False
    return True


def _problem_of(event: Any, depth: int, nodes: int, documents: int) -> tuple[str, str] | None:
    if documents > 1:
        return "a second document begins here", "keep one document to a file"
    if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
        return "anchors and aliases (& and *) are not read", "write the value out"
    if isinstance(event, CollectionStartEvent | ScalarEvent) and event.tag:
        return f"the tag {event.tag} is not read", "write the plain value, in quotes if it is text"
    if depth > DEEPEST:
        return f"nested deeper than {DEEPEST} levels", "no part of a pack is that deep"
    if nodes > MOST_NODES:
        return f"more than {MOST_NODES} values", "split the organisation"
    return None
