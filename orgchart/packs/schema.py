"""From a document to its form; every error of pydantic as a problem with its line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import ErrorDetails

from orgchart.packs.forms import FILES
from orgchart.packs.problems import Notes
from orgchart.packs.source import PackDocument, Place, kind_of
from orgchart.packs.values import Form, Known, suggest

F = TypeVar("F", bound=Form)


def validated(form: type[F], document: PackDocument, known: Known, notes: Notes) -> F | None:
    """The document as its form; None where it is none, with every problem noted."""
    try:
        return form.model_validate(document.data, context=known)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            place = tuple(part for part in error["loc"] if part != "[key]")
            notes.add(document.file, document.line(*place), *_words(error, place, form))
        return None


def json_schema() -> dict[str, Any]:
    """The JSON schema of every file of a pack, for editors."""
    _, schema = models_json_schema([(form, "validation") for form in FILES], title="Pack")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [{"$ref": f"#/$defs/{form.__name__}"} for form in FILES],
    }


WORDS: dict[str, tuple[str, str]] = {
    "pack": ("{message}", "{fix}"),
    "missing": ("{key} is missing", "add `{key}: …`"),
    "extra_forbidden": ("unknown key {key}", "{suggestion}"),
    "blank": ("{key} is empty", "give the {key}"),
    "blank item": ("'' in {key} is empty", "remove it"),
    "twice item": ("{item!r} in {key} is there twice", "remove it"),
    "unstorable": ("{what} holds a character that cannot be stored", "remove it"),
    "string_unicode": ("{what} holds a character that cannot be stored", "remove it"),
    "string_too_long": ("{what} is longer than {max_length} characters", "shorten it"),
    "too_long": ("{what} is longer than {max_length} characters", "shorten it"),
    "list_type": ("{what} must be a list, this is {kind}", "write [a, b]"),
    "bool_type": ("{what} must be true or false, this is {kind}", "write one of them"),
    "model_type": ("{what} must hold `key: value`, this is {kind}", "correct it"),
    "dict_type": ("{what} must hold `key: value`, this is {kind}", "correct it"),
    "range": ("{what} must be a whole number from {minimum} to {maximum}", "correct it"),
    "choice": ("{key} cannot be {value!r}", "{suggestion}"),
    "choice item": ("there is no {one} {value!r}", "{suggestion}"),
    "text": ("{what} must be text, this is {kind}", "put it in quotes if it is"),
}
"""What is wrong and how to correct it, by the type of pydantic's error."""
SAME = {
    "int_type": "range",
    "greater_than_equal": "range",
    "less_than_equal": "range",
    "enum": "choice",
    "literal_error": "choice",
}


def _words(error: ErrorDetails, place: Place, form: type[Form]) -> tuple[str, str]:
    """What is wrong and how to correct it, for one error of pydantic."""
    value, sort = error["input"], SAME.get(error["type"], error["type"])
    if sort == "choice" and not isinstance(value, str):
        sort = "text"
    is_item = bool(place) and isinstance(place[-1], int)
    key = next((part for part in reversed(place) if isinstance(part, str)), "the file")
    facts = _described(form, place)
    known = [choice for choice in facts.get("enum", ()) if choice]
    if sort == "extra_forbidden":
        known = list(_described(form, place[:-1]).get("properties", ()))
    facts |= {
        "key": key,
        "one": key.removesuffix("s"),
        "what": f"each of {key}" if is_item else key,
        "kind": kind_of(value),
        "value": value,
        "suggestion": suggest(str(value if sort == "choice" else key), known),
        **error.get("ctx", {}),
    }
    words = (is_item and WORDS.get(f"{sort} item")) or WORDS.get(sort, WORDS["text"])
    return words[0].format_map(facts), words[1].format_map(facts)


@cache
def _schema(form: type[Form]) -> dict[str, Any]:
    return form.model_json_schema()


def _described(form: type[Form], place: Place) -> dict[str, Any]:
    """What a form's JSON schema says of a place."""
    root = _schema(form)
    nodes = list(_options(root, root))
    for part in place:
        nodes = [option for node in nodes for option in _options(root, _below(node, part))]
    return {name: value for node in nodes for name, value in node.items()}


def _below(node: dict[str, Any], part: str | int) -> Any:
    if isinstance(part, int):
        return node.get("items")
    return node.get("properties", {}).get(part, node.get("additionalProperties"))


def _options(root: dict[str, Any], node: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    yield node
    for option in node.get("anyOf", ()):
        yield from _options(root, option)
