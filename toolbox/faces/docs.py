"""The API's description for machines and for people; open to all, it tells nothing of anybody."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbox.faces.openapi import document
from toolbox.faces.responses import json_response
from toolbox.registry import REGISTRY


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """OpenAPI 3.1 (Spec: wire 13)."""
    return json_response(document())


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """A page to read (Spec: wire 13)."""
    groups: dict[str, list[dict[str, object]]] = {}
    for tool in REGISTRY.all():
        properties = tool.input_schema.get("properties", {})
        required = set(tool.input_schema.get("required", []))
        groups.setdefault(str(tool.group), []).append(
            {
                "tool": tool,
                "modes": sorted(tool.allowed_modes),
                "parameters": [
                    {
                        "name": name,
                        "required": name in required,
                        "kind": _kind(field),
                        "description": field.get("description", ""),
                    }
                    for name, field in properties.items()
                ],
            }
        )
    return render(request, "toolbox/docs.html", {"groups": sorted(groups.items())})


def _kind(field: dict[str, object]) -> str:
    """A field's type in a few words."""
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))  # type: ignore[call-overload]
    choices = field.get("anyOf")
    if isinstance(choices, list):
        return " | ".join(_kind(choice) for choice in choices)
    if field.get("type") == "array":
        items = field.get("items")
        return f"list of {_kind(items)}" if isinstance(items, dict) else "list"
    if "$ref" in field:
        return "object"
    limit = f" ≤ {field['maxLength']}" if "maxLength" in field else ""
    return f"{field.get('type', 'any')}{limit}"
