"""The API described: OpenAPI 3.1 from the registry, one path for each tool."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from core.decision import Code, status_of
from toolbox.answers import ErrorBody
from toolbox.faces.examples import example_of, refusal
from toolbox.faces.exports import FOREIGN_FORMS
from toolbox.faces.openapi_events import describe_events, event_adapters
from toolbox.faces.results import CallerIdentity, OpenedSession, PromptText, ToolList
from toolbox.idempotency import KEY_PATTERN, MAX_KEY
from toolbox.registry import REGISTRY, Tool
from toolbox.results import Explanation

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
CONTRACT_OF_YOURS = TEXT | {
    "pattern": "^[ -~]{1,32}$",
    "examples": ["CON-20261122094500000000-a1b2"],
}
UUID: Schema = {"type": "string", "format": "uuid"}
OBJECT: Schema = {"type": "object", "additionalProperties": True}

CODES: dict[int, list[Code]] = {}
for _code in Code:
    CODES.setdefault(status_of(_code), []).append(_code)

FIXED: dict[str, Any] = {
    "GET me": CallerIdentity,
    "GET tools": ToolList,
    "session": OpenedSession,
    "POST explain": Explanation,
    "GET prompt": PromptText,
    "error": ErrorBody,
}
"""What the addresses that call no tool answer."""

READ = (400, 401, 404, 405, 429, 500)
"""What a question may be refused with; a call may be refused with every status there is."""

RETRY_AFTER = {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}
HEADERS: dict[int, Schema] = {
    401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}}},
    405: {"Allow": {"schema": TEXT}},
    429: {"Retry-After": RETRY_AFTER},
    503: {"Retry-After": RETRY_AFTER},
}


@cache
def document() -> Schema:
    """The whole description; made once for each process."""
    tools = REGISTRY.all()
    results = {tool.name: tool.result_type for tool in tools}
    results |= {name: TypeAdapter(result) for name, result in FIXED.items()}
    results |= event_adapters()
    found, definitions = TypeAdapter.json_schemas(
        [(name, "serialization", adapter) for name, adapter in results.items()],
        ref_template="#/components/schemas/{model}",
    )
    schemas: Schema = definitions["$defs"]
    answers = {name: found[name, "serialization"] for name in results}
    paths = _fixed_paths(answers, schemas) | {
        f"/api/v1/tools/{tool.name}": {"post": _call(tool, answers[tool.name], schemas)}
        for tool in tools
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "NEXUS tool API",
            "version": "1",
            "description": (
                "What an agent can do, decided at every call. A text never holds NUL or more than "
                "30 combining marks in a row, a body is never nested deeper than 32, and a number "
                "with a fraction or an exponent is 0 or between 1e-64 and 1e64. See docs/ for the "
                "rules."
            ),
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "parameters": _parameters(),
            "responses": {
                f"Refused{status}": _refusal_response(status) for status in sorted(CODES)
            },
            "schemas": schemas,
        },
    }


def _closed_object(**properties: Schema) -> Schema:
    """An object of exactly these fields."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _schema(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _refusal_response(status: int) -> Schema:
    """The refusals of one status: the envelope, with one of its codes."""
    codes = [code.value for code in CODES[status]]
    narrowed = {"allOf": [_schema("ErrorBody"), {"properties": {"error_code": {"enum": codes}}}]}
    examples = {code.value: {"value": refusal(code)} for code in CODES[status]}
    return {
        "description": ", ".join(codes),
        "content": {"application/json": {"schema": narrowed, "examples": examples}},
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


def _answers(
    success: Schema, schemas: Schema, *, status: int = 200, refusals: Iterable[int] = CODES
) -> Schema:
    return {
        str(status): {
            "description": "done",
            "content": {
                "application/json": {"schema": success, "example": example_of(success, schemas)}
            },
        }
    } | {
        str(number): {"$ref": f"#/components/responses/Refused{number}"}
        for number in sorted(refusals)
    }


def _body(schema: Schema, schemas: Schema) -> Schema:
    example = example_of(schema, schemas, whole=False)
    return {
        "required": bool(schema.get("required")),
        "content": {"application/json": {"schema": schema, "example": example}},
    }


def _call(tool: Tool, result: Schema, schemas: Schema) -> Schema:
    done = _closed_object(ok={"const": True}, tool_name={"const": tool.name}, result=result)
    return {
        "operationId": tool.name,
        "summary": tool.description,
        "tags": [str(tool.group)],
        "parameters": [_parameter("Session"), _parameter("IdempotencyKey")],
        "requestBody": _body(_body_schema(tool, schemas), schemas),
        "responses": _answers(done, schemas),
        "x-tool": {
            "source": str(tool.source),
            "modes": sorted(tool.allowed_modes),
            "offices": sorted(tool.offices),
            "read_only": tool.read_only,
            "destructive": tool.destructive,
            "idempotent": tool.idempotent or tool.read_only,
            "open_world": tool.open_world,
        },
    }


def _body_schema(tool: Tool, schemas: Schema) -> Schema:
    """The tool's parameter schema, its inner definitions moved to the components."""
    text = json.dumps(tool.input_schema)
    inner = tool.input_schema.get("$defs", {})
    for name in inner:
        text = text.replace(f'"#/$defs/{name}"', f'"#/components/schemas/{tool.name}.{name}"')
    schema: Schema = json.loads(text)
    for name, definition in schema.pop("$defs", {}).items():
        schemas[f"{tool.name}.{name}"] = definition
    return schema


def _get(
    operation: str, summary: str, success: Schema, schemas: Schema, *parameters: Schema
) -> Schema:
    return {
        "get": {
            "operationId": operation,
            "summary": summary,
            "tags": ["caller"],
            "parameters": [_parameter("Session"), *parameters],
            "responses": _answers(success, schemas, refusals=READ),
        }
    }


def _post(
    operation: str, summary: str, body: Schema, success: Schema, schemas: Schema, **more: Any
) -> Schema:
    return {
        "post": {
            "operationId": operation,
            "summary": summary,
            "tags": ["caller"],
            "parameters": [_parameter("Session"), *more.get("parameters", ())],
            "requestBody": _body(body, schemas),
            "responses": _answers(
                success,
                schemas,
                status=more.get("status", 200),
                refusals={*READ, 413, *more.get("refusals", ())},
            ),
        }
    }


def _fixed_paths(answers: Schema, schemas: Schema) -> Schema:
    asked = {
        "type": "object",
        "required": ["tool"],
        "additionalProperties": False,
        "properties": {"tool": TEXT | {"examples": ["current_time"]}, "params": OBJECT},
    }
    form = {
        "name": "format",
        "in": "query",
        "description": "the shape of another ecosystem; without it, ours",
        "schema": {"enum": list(FOREIGN_FORMS)},
    }
    session = {"name": "session_id", "in": "path", "required": True, "schema": UUID}
    events = _get("events", "Your events as they happen", TEXT, schemas, _parameter("LastEventId"))
    events["get"]["tags"] = ["events"]
    events["get"]["responses"]["200"]["content"] = {"text/event-stream": {"schema": TEXT}}
    events["get"]["x-event-types"] = describe_events(answers, schemas)
    return {
        "/api/v1/me": _get("me", "Who your key says you are", answers["GET me"], schemas),
        "/api/v1/tools": _get(
            "tools", "The tools that you can call now", answers["GET tools"], schemas, form
        ),
        "/api/v1/sessions": _post(
            "open_session",
            "Open a session, or one for a contract of yours in progress",
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {"contract": CONTRACT_OF_YOURS},
            },
            answers["session"],
            schemas,
            status=201,
            refusals=(409,),
            parameters=[_parameter("IdempotencyKey")],
        ),
        "/api/v1/sessions/{session_id}": _get(
            "session", "One of your sessions", answers["session"], schemas, session
        ),
        "/api/v1/explain": _post(
            "explain",
            "What a call would answer, and by which rule",
            asked,
            answers["POST explain"],
            schemas,
            refusals=(409,),
            parameters=[_parameter("IdempotencyKey")],
        ),
        "/api/v1/prompt": _get("prompt", "Your system prompt", answers["GET prompt"], schemas),
        "/api/v1/events": events,
    }
