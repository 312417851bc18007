"""From a file to plain YAML nodes with their lines: no tags, no aliases, no bombs."""

from __future__ import annotations

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
from yaml.nodes import MappingNode, Node

from orgchart.packs.problems import Notes

BIGGEST = 4_194_304
DEEPEST = 12
MOST_NODES = 300_000
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_mapping(path: Path, notes: Notes) -> MappingNode | None:
    """The mapping that a pack file holds, or None with the reason noted."""
    text = _text_of(path, notes)
    if text is None:
        return None
    try:
        if not _is_plain(text, str(path), notes):
            return None
        node: Node | None = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        unclosed = "flow" in (error.context or "")  # found at the next line, begun at this one
        mark = error.context_mark if unclosed else error.problem_mark or error.context_mark
        notes.add(
            str(path),
            mark.line + 1 if mark else 1,
            f"this is no YAML: {error.problem or error.context}",
            "correct the line",
        )
        return None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        notes.add(str(path), line, "a character that no text may hold", "remove it")
        return None
    if not isinstance(node, MappingNode):
        line = node.start_mark.line + 1 if node else 1
        notes.add(str(path), line, "the file must hold `key: value` lines", "write them")
        return None
    return node


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
