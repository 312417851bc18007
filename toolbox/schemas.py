"""A JSON schema as short as a model needs it; pure (Spec: tools 19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOISE = frozenset(
    {
        "title", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "pattern", "$defs",
    }
)  # fmt: skip
"""What a model can do without: a value outside its bounds is refused with the bound."""
NULL = {"type": "null"}


def briefly(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without titles, bounds, references and the null of what may be left out.

    What it allows and the whole schema refuses is answered with the field and the problem.
    """
    return _brief(schema, schema.get("$defs", {}))


def _brief(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in schema.items() if key not in NOISE}
    if "$ref" in found:
        named = defs[found.pop("$ref").rpartition("/")[2]]
        found = {**{k: v for k, v in named.items() if k not in {*NOISE, "description"}}, **found}
    if isinstance(found.get("additionalProperties"), bool):
        del found["additionalProperties"]
    optional = found.get("default", 0) is None
    if not found.get("default", True):
        del found["default"]
    if "enum" in found:
        found.pop("type", None)
    if found.get("format") == "date-time" and "description" in found:
        del found["format"]
    if optional and "anyOf" in found:
        choices = [one for one in found.pop("anyOf") if one != NULL]
        if len(choices) > 1:
            found = {"anyOf": choices, **found}
        else:
            found = {**_brief(choices[0], defs), **found}
    return {key: _part(key, value, defs) for key, value in found.items()}


def _part(key: str, value: Any, defs: Mapping[str, Any]) -> Any:
    if key == "properties":
        return {name: _brief(one, defs) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [_brief(one, defs) for one in value]
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _brief(value, defs)
    return value
