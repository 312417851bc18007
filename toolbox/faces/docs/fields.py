"""A JSON schema as rows that a person reads: name, type, limits, fields inside; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.language import gettext_noop as _
from core.wording import Part, Wording

Schema = Mapping[str, Any]

DEEPEST = 6
"""Levels of fields that are shown; below, a type that contains itself would have no end."""
BETWEEN, EXACTLY, AT_MOST, AT_LEAST = range(4)
RANGES = {
    ("minLength", "maxLength"): (
        _("%(low)s to %(high)s characters"),
        _("%(low)s characters"),
        _("at most %(high)s characters"),
        _("at least %(low)s characters"),
    ),
    ("minimum", "maximum"): (
        _("%(low)s to %(high)s"),
        "%(low)s",
        _("at most %(high)s"),
        _("at least %(low)s"),
    ),
    ("minItems", "maxItems"): (
        _("%(low)s to %(high)s items"),
        _("%(low)s items"),
        _("at most %(high)s items"),
        _("at least %(low)s items"),
    ),
}
"""What a pair of limits says: between two, exactly, at most and at least."""
NOT_BLANK = r"\S"
RULE = re.compile(r" *\([A-Z]\w+: [a-z]+ \d+[^)]*\)")
"""Where a description names the rule that it follows: for readers of the source."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an object, or one parameter of an address."""

    name: str
    type: str
    is_required: bool
    description: str = ""
    default: str = ""
    limits: Sequence[Part] = ()
    values: Sequence[str] = ()
    fields: Sequence[Field] = ()
    place: str = ""  # header, path or query, of a parameter


def fields_of(schema: Schema, components: Mapping[str, Schema], depth: int = 0) -> list[Field]:
    """The fields of an object's schema, in its order; none for anything else."""
    schema = _resolved(schema, components)
    required = set(schema.get("required", ()))
    return [
        field_of(name, one, components, is_required=name in required, depth=depth)
        for name, one in schema.get("properties", {}).items()
    ]


def field_of(
    name: str,
    schema: Schema,
    components: Mapping[str, Schema],
    *,
    is_required: bool,
    depth: int = 0,
    place: str = "",
) -> Field:
    """One field, with the fields inside its objects."""
    shapes = _shapes(schema, components)
    inner = next((found for one in shapes if (found := _object_in(one, components))), None)
    return Field(
        name=name,
        type=_type(schema, components),
        is_required=is_required,
        description=RULE.sub("", _described(schema, components)),
        default=_default(schema),
        limits=_limits(shapes),
        values=[str(value) or '""' for one in shapes for value in one.get("enum", ())],
        fields=fields_of(inner, components, depth + 1) if inner and depth < DEEPEST else (),
        place=place,
    )


def _resolved(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    while "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    return schema


def _shapes(schema: Schema, components: Mapping[str, Schema]) -> list[Schema]:
    """What the value may be, each without references and alternatives; never null."""
    schema = _resolved(schema, components)
    if "anyOf" in schema:
        return [shape for one in schema["anyOf"] for shape in _shapes(one, components)]
    return [] if schema.get("type") == "null" else [schema]


def _object_in(shape: Schema, components: Mapping[str, Schema]) -> Schema | None:
    """The object that the value is, or is a list of, if its fields are known."""
    if shape.get("type") == "array":
        items = _shapes(shape.get("items", {}), components)
        return next((found for one in items if (found := _object_in(one, components))), None)
    return shape if shape.get("properties") else None


def _type(schema: Schema, components: Mapping[str, Schema]) -> str:
    """The type in a few words, such as `list of string or null`."""
    schema = _resolved(schema, components)
    if "anyOf" in schema:
        names = dict.fromkeys(_type(one, components) for one in schema["anyOf"])
        return " or ".join(names)
    if "const" in schema:
        return json.dumps(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), components)}"
    return str(
        schema.get("format") or schema.get("type") or ("string" if "enum" in schema else "any")
    )


def _described(schema: Schema, components: Mapping[str, Schema]) -> str:
    """The field's own words, else those of the type it refers to."""
    if "description" in schema:
        return str(schema["description"])
    if "anyOf" in schema:
        return next((said for one in schema["anyOf"] if (said := _described(one, components))), "")
    return str(_resolved(schema, components).get("description", ""))


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return "" if value is None else json.dumps(value)


def _limits(shapes: Sequence[Schema]) -> list[Part]:
    said = {str(words): words for one in shapes for words in _limits_of(one)}
    return [*said.values()]


def _limits_of(shape: Schema) -> Iterator[Part]:
    """Ranges as `1 to 64 characters`; a pattern as it is written."""
    for (least, most), words in RANGES.items():
        limits = {"low": shape.get(least), "high": shape.get(most)}
        if (said := _words_for(limits["low"], limits["high"])) is not None:
            yield Wording(words[said], limits)
    if (above := shape.get("exclusiveMinimum")) is not None:
        yield Wording(_("more than %(low)s"), {"low": above})
    if pattern := shape.get("pattern"):
        yield Wording(_("not blank"), {}) if pattern == NOT_BLANK else str(pattern)


def _words_for(low: float | None, high: float | None) -> int | None:
    """Which of a range's four sentences says these limits."""
    if low is None and high is None:
        return None
    if low is None:
        return AT_MOST
    if high is None:
        return AT_LEAST
    return EXACTLY if low == high else BETWEEN
