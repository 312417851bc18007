"""The API described: OpenAPI 3.1 from the registry, one path for each tool."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from orgchart.decision import Code, status_of
from toolbox.registry import REGISTRY, Tool

Schema = dict[str, Any]

STATUSES = sorted({status_of(code) for code in Code})
OBJECT: Schema = {"type": "object", "additionalProperties": True}


@cache
def document() -> Schema:
    """The whole description; made once for each process."""
    schemas: Schema = {"Error": _error_schema()}
    paths: Schema = {}
    for tool in REGISTRY.all():
        paths[f"/api/v1/tools/{tool.name}"] = {"post": _call(tool, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "NEXUS tool API",
            "version": "1",
            "description": "What an agent can do, decided at every call. See docs/ for the rules.",
        },
        "security": [{"key": []}],
        "paths": _fixed_paths() | paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _error_schema() -> Schema:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": [
            "ok",
            "error_code",
            "tool_name",
            "mode",
            "message",
            "next_action",
            "details",
        ],
        "properties": {
            "ok": {"const": False},
            "error_code": {"enum": [code.value for code in Code]},
            "tool_name": text,
            "mode": text,
            "message": text,
            "next_action": text,
            "details": OBJECT,
        },
    }


def _answers(success: Schema, status: str = "200") -> Schema:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    codes: dict[int, list[str]] = {}
    for code in Code:
        codes.setdefault(status_of(code), []).append(code.value)
    return {
        status: {
            "description": "done",
            "content": {"application/json": {"schema": success}},
        }
    } | {
        str(number): {"description": ", ".join(codes[number]), "content": error}
        for number in STATUSES
    }


def _call(tool: Tool, schemas: Schema) -> Schema:
    parameters = _hoisted(tool, schemas)
    done: Schema = {
        "type": "object",
        "required": ["ok", "tool_name", "result"],
        "properties": {
            "ok": {"const": True},
            "tool_name": {"const": tool.name},
            "result": OBJECT,
        },
    }
    return {
        "operationId": tool.name,
        "summary": tool.description,
        "tags": [str(tool.group)],
        "parameters": [
            _header("X-Nexus-Session", "one of your sessions; without it, the standing one"),
            _header("Idempotency-Key", "the same key and body give the first answer again"),
        ],
        "requestBody": {
            "required": False,
            "content": {"application/json": {"schema": parameters}},
        },
        "responses": _answers(done),
    }


def _hoisted(tool: Tool, schemas: Schema) -> Schema:
    """The tool's parameter schema, its inner definitions moved to the components."""
    text = json.dumps(tool.input_schema)
    inner = tool.input_schema.get("$defs", {})
    for name in inner:
        text = text.replace(f'"#/$defs/{name}"', f'"#/components/schemas/{tool.name}.{name}"')
    schema: Schema = json.loads(text)
    for name, definition in schema.pop("$defs", {}).items():
        schemas[f"{tool.name}.{name}"] = definition
    return schema


def _header(name: str, description: str) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
    }


def _fixed_paths() -> Schema:
    def get(operation: str, summary: str, *parameters: Schema, kind: str = "") -> Schema:
        responses = _answers(OBJECT)
        if kind:
            responses["200"]["content"] = {kind: {"schema": {"type": "string"}}}
        return {
            "get": {
                "operationId": operation,
                "summary": summary,
                "tags": ["caller"],
                "parameters": list(parameters),
                "responses": responses,
            }
        }

    def post(operation: str, summary: str, body: Schema, status: str = "200") -> Schema:
        return {
            "post": {
                "operationId": operation,
                "summary": summary,
                "tags": ["caller"],
                "requestBody": {"content": {"application/json": {"schema": body}}},
                "responses": _answers(OBJECT, status),
            }
        }

    nothing = {"type": "object", "additionalProperties": False}
    asked = {
        "type": "object",
        "required": ["tool"],
        "additionalProperties": False,
        "properties": {"tool": {"type": "string"}, "params": {"type": "object"}},
    }
    form = {
        "name": "format",
        "in": "query",
        "required": False,
        "schema": {"enum": ["openai", "anthropic", "mcp"]},
    }
    session = {
        "name": "session_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "format": "uuid"},
    }
    return {
        "/api/v1/me": get("me", "Who your key says you are"),
        "/api/v1/tools": get("tools", "The tools that you can call now", form),
        "/api/v1/sessions": post("open_session", "Open a session", nothing, "201"),
        "/api/v1/sessions/{session_id}": get("session", "One of your sessions", session),
        "/api/v1/explain": post("explain", "What a call would answer, and by which rule", asked),
        "/api/v1/prompt": get("prompt", "Your system prompt"),
        "/api/v1/events": get(
            "events",
            "Your events as they happen",
            _header("Last-Event-ID", "the last event you saw"),
            kind="text/event-stream",
        ),
    }
