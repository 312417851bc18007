"""How many bytes the parameters of a tool can have, by their JSON schema; pure (Spec: tools 29)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LETTER = 12  # bytes of one character in its longest spelling: two escapes
PLAIN = 128  # bytes of a number, a moment, true, false or null
SLACK = 4096  # bytes of spaces, and of fields that the refusal is to name
MARKS = 8  # bytes around a name or an item
ENDLESS = re.compile(r"[*+]|,\}")
"""In a pattern: no bound above."""


def largest_body(schema: Mapping[str, Any]) -> int | None:
    """The bytes of the longest body that fits; None if the schema gives no bound."""
    size = _largest(schema, schema.get("$defs", {}))
    return None if size is None else size + SLACK


def _largest(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> int | None:
    if "$ref" in schema:
        return _largest(defs[schema["$ref"].rpartition("/")[2]], defs)
    choices = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    if choices:
        return _most([_largest(one, defs) for one in choices])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return max(LETTER * len(str(value)) + MARKS for value in values)
    return _of_type(schema, defs)


def _of_type(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> int | None:
    match schema.get("type"):
        case "string":
            return _text(schema)
        case "array":
            return _times(_largest(schema.get("items", {}), defs), schema.get("maxItems"))
        case "object":
            return _object(schema, defs)
        case "integer" | "number" | "boolean" | "null":
            return PLAIN
        case _:
            return None


def _text(schema: Mapping[str, Any]) -> int | None:
    if "maxLength" in schema:
        return LETTER * int(schema["maxLength"]) + MARKS
    pattern = schema.get("pattern", "")
    whole = pattern.startswith("^") and pattern.endswith("$")
    bounded = "format" in schema or (whole and not ENDLESS.search(pattern))
    return LETTER * PLAIN if bounded else None


def _object(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> int | None:
    if schema.get("additionalProperties", True) is not False:
        return None
    parts = {name: _largest(one, defs) for name, one in schema.get("properties", {}).items()}
    total = MARKS
    for name, size in parts.items():
        if size is None:
            return None
        total += LETTER * len(name) + MARKS + size
    return total


def _times(size: int | None, most: int | None) -> int | None:
    return None if size is None or most is None else (size + MARKS) * most + MARKS


def _most(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None
