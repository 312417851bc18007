"""From a document to its form; every error of pydantic as a problem with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import ErrorDetails

from orgchart.packs.forms import FILES
from orgchart.packs.problems import Notes
from orgchart.packs.source import Document, Place, kind_of
from orgchart.packs.values import Form, Known, suggest

F = TypeVar("F", bound=Form)


def validated(form: type[F], document: Document, known: Known, notes: Notes) -> F | None:
    """The document as its form; None where it is none, with every problem noted."""
    try:
        return form.model_validate(document.data, context=known)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            place = tuple(part for part in error["loc"] if part != "[key]")
            words = WORDS.get(error["type"], _text)(Fault(error, place, form))
            notes.add(document.file, document.line(*place), *words)
        return None


def json_schema() -> dict[str, Any]:
    """The JSON schema of every file of a pack, for editors."""
    _, schema = models_json_schema([(form, "validation") for form in FILES], title="Pack")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [{"$ref": f"#/$defs/{form.__name__}"} for form in FILES],
    }


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of pydantic in a form, in words."""

    error: ErrorDetails
    place: Place
    form: type[Form]

    @property
    def key(self) -> str:
        """The key that the value belongs to."""
        keys = [part for part in self.place if isinstance(part, str)]
        return keys[-1] if keys else "the file"

    @property
    def is_item(self) -> bool:
        """Whether the value is an item of the key's list."""
        return bool(self.place) and isinstance(self.place[-1], int)

    @property
    def what(self) -> str:
        """The value as the subject of a sentence."""
        return f"each of {self.key}" if self.is_item else self.key

    @property
    def kind(self) -> str:
        """What the value is."""
        return kind_of(self.error["input"])

    def limit(self, *names: str) -> Any:
        """The first of these limits that the error or the form's schema names."""
        given = [self.error.get("ctx", {}), *_nodes(self.form, self.place)]
        return next((node[name] for node in given for name in names if name in node), None)


def _text(fault: Fault) -> tuple[str, str]:
    return f"{fault.what} must be text, this is {fault.kind}", "put it in quotes if it is"


def _choice(fault: Fault) -> tuple[str, str]:
    value = fault.error["input"]
    if not isinstance(value, str):
        return _text(fault)
    what = (
        f"there is no {fault.key.removesuffix('s')}" if fault.is_item else f"{fault.key} cannot be"
    )
    return f"{what} {value!r}", suggest(value, list(filter(None, fault.limit("enum"))))


def _blank(fault: Fault) -> tuple[str, str]:
    if fault.is_item:
        return f"'' in {fault.key} is empty", "remove it"
    return f"{fault.key} is empty", f"give the {fault.key}"


def _unknown(fault: Fault) -> tuple[str, str]:
    around = _nodes(fault.form, fault.place[:-1])
    keys = [key for node in around for key in node.get("properties", ())]
    return f"unknown key {fault.key}", suggest(fault.key, keys)


def _range(fault: Fault) -> tuple[str, str]:
    low, high = fault.limit("minimum"), fault.limit("maximum")
    return f"{fault.what} must be a whole number from {low} to {high}", "correct it"


def _long(fault: Fault) -> tuple[str, str]:
    return f"{fault.what} is longer than {fault.limit('max_length')} characters", "shorten it"


def _unstorable(fault: Fault) -> tuple[str, str]:
    return f"{fault.what} holds a character that cannot be stored", "remove it"


def _mapping(fault: Fault) -> tuple[str, str]:
    return f"{fault.what} must hold `key: value`, this is {fault.kind}", "correct it"


WORDS: dict[str, Callable[[Fault], tuple[str, str]]] = {
    "pack": lambda fault: (fault.limit("message"), fault.limit("fix")),
    "missing": lambda fault: (f"{fault.key} is missing", f"add `{fault.key}: …`"),
    "extra_forbidden": _unknown,
    "blank": _blank,
    "twice": lambda fault: (f"{fault.limit('item')!r} in {fault.key} is there twice", "remove it"),
    "unstorable": _unstorable,
    "string_unicode": _unstorable,
    "string_too_long": _long,
    "too_long": _long,
    "list_type": lambda fault: (
        f"{fault.what} must be a list, this is {fault.kind}",
        "write [a, b]",
    ),
    "bool_type": lambda fault: (
        f"{fault.what} must be true or false, this is {fault.kind}",
        "write one of them",
    ),
    "model_type": _mapping,
    "dict_type": _mapping,
    "int_type": _range,
    "greater_than_equal": _range,
    "less_than_equal": _range,
    "enum": _choice,
    "literal_error": _choice,
}
"""What is wrong and how to correct it, by the type of pydantic's error; any other asks for text."""


@cache
def _schema(form: type[Form]) -> dict[str, Any]:
    return form.model_json_schema()


def _nodes(form: type[Form], place: Place) -> Iterator[dict[str, Any]]:
    """The parts of a form's JSON schema that describe a place."""
    root = _schema(form)
    nodes = list(_options(root, root))
    for part in place:
        nodes = [option for node in nodes for option in _options(root, _child(node, part))]
    return iter(nodes)


def _child(node: dict[str, Any], part: str | int) -> Any:
    if isinstance(part, int):
        return node.get("items")
    return node.get("properties", {}).get(part, node.get("additionalProperties") or None)


def _options(root: dict[str, Any], node: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    yield node
    for option in node.get("anyOf", ()):
        yield from _options(root, option)
