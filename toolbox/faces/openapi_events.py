"""The event stream's part of the API's description: a schema and an example of each event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from core.actions import Action
from core.decision import Code
from toolbox.faces.event_types import DenialFrame, EventFrame, PausedEvent
from toolbox.faces.example_values import TIME
from toolbox.faces.examples import refusal
from toolbox.faces.stream_events import KINDS, STREAM_EVENTS, StreamEvent

Schema = dict[str, Any]

ENDS = "agent"
"""The kind of the stream's last event."""

EVENT_TYPES: Mapping[str, Any] = {
    "event": EventFrame,
    "event tool.denied": DenialFrame,
    "event agent.paused": PausedEvent,
    **{f"details of {event.action}": event.details for event in STREAM_EVENTS},
}
"""The types that `describe_events` needs the schemas of, by names of their own."""


def event_adapters() -> dict[str, TypeAdapter[Any]]:
    """Adapters of EVENT_TYPES."""
    return {name: TypeAdapter(type_) for name, type_ in EVENT_TYPES.items()}


def describe_events(found: Schema, schemas: Schema) -> Schema:
    """Each event by kind and action: summary, schema and example (Spec: wire 11).

    `found` holds the schemas of `event_adapters`; those of the events are added to `schemas`.
    """
    told: dict[str, Schema] = {kind: {} for kind in (*KINDS, ENDS)}
    for event in STREAM_EVENTS:
        name = f"event.{event.action}"
        schemas[name] = _event_schema(event, found, schemas)
        told[event.kind][str(event.action)] = {
            "summary": event.summary,
            "schema": {"$ref": f"#/components/schemas/{name}"},
            "example": _example(event),
        }
    told[ENDS][str(Action.AGENT_PAUSED)] = {
        "summary": "A person paused you; the stream ends. Go on later from the last id you saw.",
        "schema": found["event agent.paused"],
        "example": {"kind": ENDS, "action": str(Action.AGENT_PAUSED), **_pause()},
    }
    return told


def _event_schema(event: StreamEvent, found: Schema, schemas: Schema) -> Schema:
    """What every event says, with its kind, action and details."""
    is_denial = event.action is Action.TOOL_DENIED
    frame = schemas[found["event tool.denied" if is_denial else "event"]["$ref"].rpartition("/")[2]]
    return {
        "type": "object",
        "description": event.summary,
        "properties": {
            **frame["properties"],
            "kind": {"const": event.kind},
            "action": {"const": str(event.action)},
            "details": found[f"details of {event.action}"],
        },
        "required": [*frame["required"], "details"],
        "additionalProperties": False,
    }


def _example(event: StreamEvent) -> Schema:
    said = {
        "kind": event.kind,
        "action": str(event.action),
        "actor": "agent:it_manager",
        "tool": "",
        "subject": KINDS[event.kind][0],
        "code": "",
        "reason": "",
        "at": TIME,
        "details": dict(event.example),
    }
    if event.action is not Action.TOOL_DENIED:
        return said
    refused = refusal(Code.CONTACT_DENIED)
    return {
        **said,
        "actor": "agent:backend_worker",
        "tool": refused["tool_name"],
        "code": refused["error_code"],
        "reason": refused["message"],
        **{name: refused[name] for name in ("tool_name", "error_code", "message")},
        **{name: event.example[name] for name in ("call_id", "mode", "next_action")},
    }


def _pause() -> Schema:
    return {**refusal(Code.AGENT_PAUSED), "tool_name": "", "mode": ""}
