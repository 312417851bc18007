"""An example of each schema and each error, for the API's description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.decision import Code, deny
from toolbox.answers import INTERNAL, envelope

Schema = Mapping[str, Any]

TIME = "2026-02-20T09:30:00Z"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
VALUES: Mapping[str, Any] = {
    "activeForm": "Building the login form",
    "address": "nexus:backend_worker",
    "agent": "backend_worker",
    "artifact": f"registry.example.com/shop@sha256:{DIGEST}",
    "assigned_branch": "feature/login",
    "body": "The login form is ready for review.",
    "branch": "feature/login",
    "contract_id": "CON-20260220-093000-4F7A",
    "contract_ref": "CON-20260220-093000-4F7A",
    "created_at": TIME,
    "currency": "EUR",
    "description": "Build the login form and its tests.",
    "from": "it_manager",
    "handle": "backend_worker",
    "level": 3,
    "mail_id": "MAIL-20260220-093000-9C2E",
    "message": "Add the login form",
    "name": "current_time",
    "organisation": "nexus",
    "owner": "backend_worker",
    "path": "src/login.py",
    "reason": "The work is done and reviewed.",
    "role": "backend_worker",
    "sha256": DIGEST,
    "subject": "Login form",
    "taskId": "1",
    "title": "Login form",
    "type": "info",
    "to": "it_manager",
    "url": "https://example.com/docs",
    "version": 1,
}
"""Example values by the name of a field, where they fit its schema."""

REFUSALS: Mapping[Code, str] = {
    Code.INVALID_PARAMS: "send_mail: subject: String should have at most 200 characters",
    Code.UNAUTHENTICATED: "this key is unknown, revoked or its agent deactivated",
    Code.TOOL_NOT_BOUND: "create_contract is not bound to backend_worker",
    Code.TOOL_DENIED: "web_search is taken from this agent by its manager",
    Code.MODE_DENIED: "read_file is not allowed in chat_safe mode",
    Code.CONTACT_DENIED: "backend_worker may not contact ceo",
    Code.MAIL_TYPE_DENIED: "mail type contract is not for backend_worker -> it_manager",
    Code.CONTRACT_REQUIRED: "this channel is open only under an active contract",
    Code.RECIPIENT_UNKNOWN: "there is no agent frontend_wroker in this organisation",
    Code.RECIPIENT_INACTIVE: "qa_worker is deactivated",
    Code.LEVEL_DENIED: "a contract goes to a lower level only",
    Code.AGENT_INACTIVE: "qa_worker is deactivated; it can have no key",
    Code.AGENT_PAUSED: "qa_worker is paused",
    Code.SCOPE_DENIED: ".env lies outside the scope of this contract",
    Code.BRANCH_DENIED: "main is not the branch of this contract",
    Code.APPROVAL_REQUIRED: "a deployment needs an approval of this artifact",
    Code.AUTHORISATION_REQUIRED: "deactivating an agent needs a contract that authorises it",
    Code.FORCE_ASSIGN_DENIED: "only a superior may assign a task that another agent owns",
    Code.ROLE_MISMATCH: "this task needs the role qa_worker",
    Code.STAGE_DENIED: "the case is not in the stage IMPLEMENTATION",
    Code.INPUT_DENIED: "the office Tester has no input ANALYSIS",
    Code.NOT_YOURS: "this contract is assigned to another agent",
    Code.UNKNOWN_TOOL: "there is no tool send_male",
    Code.NOT_FOUND: "there is no contract CON-1",
    Code.METHOD_NOT_ALLOWED: "GET is not for this address",
    Code.VERSION_MISMATCH: "version 3 was expected, the record has version 4",
    Code.INVALID_TRANSITION: "a contract that is passed cannot be accepted",
    Code.TASK_BLOCKED: "task 4 is blocked by task 2",
    Code.DELEGATION_CIRCLE: "coding_leader is already part of this delegation",
    Code.IDEMPOTENCY_MISMATCH: "this Idempotency-Key was used for another call",
    Code.TOO_LARGE: "a body may have 1048576 bytes at most",
    Code.RATE_LIMITED: "more than 600 calls a minute",
    Code.QUOTA_EXCEEDED: "the organisation has used its 1000 mails of today",
    Code.STORAGE_FULL: "the disk of this installation is full",
    Code.ISOLATION_UNAVAILABLE: "this machine cannot isolate a command",
    Code.DRIVER_UNAVAILABLE: "no search provider is configured",
    Code.INTERNAL: INTERNAL.message,
}


def refusal(code: Code) -> dict[str, Any]:
    """The envelope of an error with this code."""
    return envelope(
        deny(code, REFUSALS[code], "read the rule, then change the call or ask your superior"),
        tool="send_mail",
        mode="chat_safe",
    )


def example_of(schema: Schema, components: Schema, *, name: str = "", whole: bool = True) -> Any:
    """A value that the schema allows; of an object every field, or only those it requires."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in schema and not _stated_values(schema):
        schema = next(choice for choice in schema["anyOf"] if choice.get("type") != "null")
        return example_of(schema, components, name=name, whole=whole)
    if given := _stated_values(schema):
        return given[0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            names = fields if whole else schema.get("required", ())
            return {n: example_of(fields[n], components, name=n, whole=whole) for n in names}
        case "array":
            items = schema.get("items", {"type": "string"})
            return [example_of(items, components, name=name.removesuffix("s"), whole=whole)]
        case _:
            return _scalar(schema, name)


def _stated_values(schema: Schema) -> list[Any]:
    """The values that the schema itself names."""
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return [schema[key]]
    return list(schema.get("examples") or schema.get("enum") or ())


def _scalar(schema: Schema, name: str) -> Any:
    match schema.get("type"), schema.get("format"):
        case "integer" | "number", _:
            return max(schema.get("minimum", 1), VALUES.get(name, 1))
        case "boolean", _:
            return True
        case _, "date-time":
            return TIME
        case _, "uuid":
            return "0197f0c4-5b1e-7c3a-9d58-2f6a1e4b7c90"
        case _:
            return str(VALUES.get(name) or "1" * schema.get("minLength", 1))
