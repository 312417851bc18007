"""The API described: OpenAPI 3.1 from the registry, one path for each tool."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from core.decision import Code, status_of
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup, ToolMode
from toolbox.faces.exports import FOREIGN_FORMS
from toolbox.idempotency import KEY_PATTERN, MAX_KEY
from toolbox.registry import REGISTRY, Tool

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
UUID: Schema = {"type": "string", "format": "uuid"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
OBJECT: Schema = {"type": "object", "additionalProperties": True}
MODE: Schema = {"enum": [mode.value for mode in ToolMode]}

CODES: dict[int, list[Code]] = {}
for _code in Code:
    CODES.setdefault(status_of(_code), []).append(_code)

READ = (400, 401, 404, 405, 429, 500)
"""What a question may be refused with; a call may be refused with every status there is."""

HEADERS: dict[int, Schema] = {
    401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}}},
    405: {"Allow": {"schema": TEXT}},
    429: {"Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}},
}


@cache
def document() -> Schema:
    """The whole description; made once for each process."""
    schemas: Schema = {"Error": _error(), "Session": _session()}
    paths: Schema = {}
    for tool in REGISTRY.all():
        paths[f"/api/v1/tools/{tool.name}"] = {"post": _call(tool, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "NEXUS tool API",
            "version": "1",
            "description": (
                "What an agent can do, decided at every call. A text never holds NUL, a body is "
                "never nested deeper than 32. See docs/ for the rules."
            ),
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": _fixed_paths() | paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "parameters": _parameters(),
            "responses": {f"Refused{status}": _refused(status) for status in sorted(CODES)},
            "schemas": schemas,
        },
    }


def _closed(**properties: Schema) -> Schema:
    """An object of exactly these fields."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _schema(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _error() -> Schema:
    return _closed(
        ok={"const": False},
        error_code={"enum": [code.value for code in Code]},
        tool_name=TEXT,
        mode={"enum": ["", *MODE["enum"]]},
        message=TEXT,
        next_action=TEXT,
        details=OBJECT,
    )


def _session() -> Schema:
    return _closed(id=UUID, mode=MODE, contract=_or_null(TEXT), opened_at=MOMENT)


def _refused(status: int) -> Schema:
    """The refusals of one status: the envelope, with one of its codes."""
    codes = [code.value for code in CODES[status]]
    narrowed = {"allOf": [_schema("Error"), {"properties": {"error_code": {"enum": codes}}}]}
    return {
        "description": ", ".join(codes),
        "content": {"application/json": {"schema": narrowed}},
        **({"headers": HEADERS[status]} if status in HEADERS else {}),
    }


def _parameters() -> Schema:
    def header(name: str, description: str, schema: Schema) -> Schema:
        return {"name": name, "in": "header", "description": description, "schema": schema}

    return {
        "Session": header(
            "X-Nexus-Session", "one of your sessions; without it, the standing one", UUID
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "the same key and body give the first answer again, for 24 hours",
            {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": KEY_PATTERN},
        ),
        "LastEventId": header("Last-Event-ID", "the last event that you saw", TEXT),
    }


def _answers(success: Schema, *, status: int = 200, refusals: Iterable[int] = CODES) -> Schema:
    return {
        str(status): {
            "description": "done",
            "content": {"application/json": {"schema": success}},
        }
    } | {
        str(number): {"$ref": f"#/components/responses/Refused{number}"}
        for number in sorted(refusals)
    }


def _call(tool: Tool, schemas: Schema) -> Schema:
    parameters = _hoisted(tool, schemas)
    done = _closed(ok={"const": True}, tool_name={"const": tool.name}, result=OBJECT)
    return {
        "operationId": tool.name,
        "summary": tool.description,
        "tags": [str(tool.group)],
        "parameters": [_parameter("Session"), _parameter("IdempotencyKey")],
        "requestBody": {
            "required": bool(parameters.get("required")),
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


def _get(operation: str, summary: str, success: Schema, *parameters: Schema) -> Schema:
    return {
        "get": {
            "operationId": operation,
            "summary": summary,
            "tags": ["caller"],
            "parameters": [_parameter("Session"), *parameters],
            "responses": _answers(success, refusals=READ),
        }
    }


def _post(operation: str, summary: str, body: Schema, success: Schema, **more: Any) -> Schema:
    return {
        "post": {
            "operationId": operation,
            "summary": summary,
            "tags": ["caller"],
            "parameters": [_parameter("Session"), *more.get("parameters", ())],
            "requestBody": {
                "required": "required" in body,
                "content": {"application/json": {"schema": body}},
            },
            "responses": _answers(
                success, status=more.get("status", 200), refusals={*READ, *more["refusals"]}
            ),
        }
    }


def _fixed_paths() -> Schema:
    nothing = {"type": "object", "additionalProperties": False}
    asked = {
        "type": "object",
        "required": ["tool"],
        "additionalProperties": False,
        "properties": {"tool": TEXT, "params": OBJECT},
    }
    form = {
        "name": "format",
        "in": "query",
        "description": "the shape of another ecosystem; without it, ours",
        "schema": {"enum": list(FOREIGN_FORMS)},
    }
    session = {"name": "session_id", "in": "path", "required": True, "schema": UUID}
    events = _get("events", "Your events as they happen", TEXT, _parameter("LastEventId"))
    events["get"]["responses"]["200"]["content"] = {"text/event-stream": {"schema": TEXT}}
    return {
        "/api/v1/me": _get("me", "Who your key says you are", _me()),
        "/api/v1/tools": _get("tools", "The tools that you can call now", _listing(), form),
        "/api/v1/sessions": _post(
            "open_session",
            "Open a session",
            nothing,
            _schema("Session"),
            status=201,
            refusals=(409, 413),
            parameters=[_parameter("IdempotencyKey")],
        ),
        "/api/v1/sessions/{session_id}": _get(
            "session", "One of your sessions", _schema("Session"), session
        ),
        "/api/v1/explain": _post(
            "explain",
            "What a call would answer, and by which rule",
            asked,
            _explained(),
            refusals=(413,),
        ),
        "/api/v1/prompt": _get("prompt", "Your system prompt", _closed(prompt=TEXT)),
        "/api/v1/events": events,
    }


def _me() -> Schema:
    return _closed(
        agent=TEXT,
        address=TEXT,
        role=TEXT,
        level={"type": "integer"},
        organisation=TEXT,
        session=_closed(id=UUID, mode=MODE, contract=_or_null(TEXT)),
        frame=_or_null(TEXT),
        policy_version={"type": "integer"},
    )


def _explained() -> Schema:
    return _closed(
        allowed={"type": "boolean"},
        error_code=_or_null({"enum": [code.value for code in Code]}),
        rule=TEXT,
        message=TEXT,
    )


def _listing() -> Schema:
    """The caller's tools: ours, or in another ecosystem's shape."""
    named = {"name": TEXT, "description": TEXT}
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    ours = _closed(
        **named,
        group={"enum": [group.value for group in ToolGroup]},
        source={"enum": [source.value for source in Source if source is not Source.OFFICE]},
        input_schema=OBJECT,
    )
    openai = _closed(type={"const": "function"}, function=_closed(**named, parameters=OBJECT))
    anthropic = _closed(**named, input_schema=OBJECT)
    mcp = _closed(
        **named,
        inputSchema=OBJECT,
        annotations=_closed(**{hint: {"type": "boolean"} for hint in hints}),
    )
    shapes = (ours, openai, anthropic, mcp)
    return _closed(tools={"anyOf": [_list_of(shape) for shape in shapes]})
