"""An example of each schema and each error, for the API's description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.decision import Code, deny
from toolbox.answers import DATABASE_UNAVAILABLE, INTERNAL, SERVER_STOPPING, envelope
from toolbox.faces.example_values import TIME, VALUES

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefusalExample:
    """A call that was refused: why, what to do instead, and the tool that was called."""

    message: str
    next_action: str
    tool: str = ""
    mode: str = "chat_safe"


_R = RefusalExample
REFUSALS: Mapping[Code, RefusalExample] = {
    Code.INVALID_PARAMS: _R(
        "send_mail: subject: String should have at most 200 characters",
        "call it again with parameters that fit its schema",
        "send_mail",
    ),
    Code.UNAUTHENTICATED: _R(
        "this key is unknown, revoked or its agent deactivated",
        "send Authorization: Bearer and your key",
        mode="",
    ),
    Code.TOOL_NOT_BOUND: _R(
        "create_contract is not bound to backend_worker",
        "ask it_manager to issue the contract",
        "create_contract",
    ),
    Code.TOOL_DENIED: _R(
        "web_search is taken from this agent by its manager", "ask it_manager", "web_search"
    ),
    Code.MODE_DENIED: _R(
        "read_file is not allowed in chat_safe mode",
        "accept a contract of mode coding, and call it in that session",
        "read_file",
    ),
    Code.CONTACT_DENIED: _R(
        "backend_worker may not contact ceo", "write to one of: it_manager", "send_mail"
    ),
    Code.MAIL_TYPE_DENIED: _R(
        "mail type contract is not for backend_worker -> it_manager",
        "send one of: info, question, report",
        "send_mail",
    ),
    Code.CONTRACT_REQUIRED: _R(
        "this channel is open only under an active contract",
        "ask it_manager for a contract that opens it",
        "send_mail",
    ),
    Code.RECIPIENT_UNKNOWN: _R(
        "there is no agent frontend_wroker in this organisation",
        "write to one of: frontend_worker, it_manager",
        "send_mail",
    ),
    Code.RECIPIENT_INACTIVE: _R(
        "qa_worker is deactivated", "write to one of: it_manager", "send_mail"
    ),
    Code.LEVEL_DENIED: _R(
        "a contract goes to a lower level only",
        "issue it to one of your workers",
        "create_contract",
    ),
    Code.AGENT_INACTIVE: _R("qa_worker is deactivated; it can have no key", "activate it first"),
    Code.AGENT_PAUSED: _R(
        "you are paused by a person: it repeats itself",
        "stop calling and wait: a member of Board or HR resumes you",
        "send_mail",
    ),
    Code.SCOPE_DENIED: _R(
        ".env lies outside the scope of this contract",
        "read and write under src/ only",
        "read_file",
        "coding",
    ),
    Code.BRANCH_DENIED: _R(
        "main is not the branch of this contract", "push feature/login", "git_push", "coding"
    ),
    Code.APPROVAL_REQUIRED: _R(
        "a deployment needs an approval of this artifact",
        "ask it_manager to approve it with approve_deployment",
        "docker_deploy",
        "coding",
    ),
    Code.AUTHORISATION_REQUIRED: _R(
        "deactivating an agent needs a contract that authorises it",
        "ask ceo for a contract of kind org_change",
        "deactivate_agent",
    ),
    Code.FORCE_ASSIGN_DENIED: _R(
        "only a superior may assign a task that another agent owns",
        "choose a task without an owner",
        "task_update",
    ),
    Code.ROLE_MISMATCH: _R(
        "this task needs the role qa_worker", "choose a task of your own role", "task_update"
    ),
    Code.STAGE_DENIED: _R(
        "the case is not in the stage IMPLEMENTATION",
        "wait for the event case.turn",
        "case_submit",
    ),
    Code.INPUT_DENIED: _R(
        "the office Tester has no input ANALYSIS", "leave ANALYSIS out", "case_inputs"
    ),
    Code.NOT_YOURS: _R(
        "this contract is assigned to another agent",
        "list your contracts with list_contracts",
        "accept_contract",
    ),
    Code.UNKNOWN_TOOL: _R(
        "there is no tool send_male", "did you mean send_mail? See GET /api/v1/tools", "send_male"
    ),
    Code.NOT_FOUND: _R(
        "there is no contract CON-1", "list your contracts with list_contracts", "read_contract"
    ),
    Code.METHOD_NOT_ALLOWED: _R("GET is not for this address", "use POST", mode=""),
    Code.VERSION_MISMATCH: _R(
        "version 3 was expected, the record has version 4",
        "read it again, then decide again",
        "close_contract",
    ),
    Code.INVALID_TRANSITION: _R(
        "a contract that is passed cannot be accepted", "read the contract", "accept_contract"
    ),
    Code.TASK_BLOCKED: _R(
        "task 4 is blocked by task 2", "finish task 2 first, or choose another task", "task_update"
    ),
    Code.DELEGATION_CIRCLE: _R(
        "coding_leader is already part of this delegation",
        "delegate to an agent that is not waiting for you",
        "delegate_to",
    ),
    Code.IDEMPOTENCY_MISMATCH: _R(
        "this Idempotency-Key was used for another call", "send a new key", "send_mail"
    ),
    Code.TOO_LARGE: _R(
        "a body may have 1048576 bytes at most", "send less", "write_file", "coding"
    ),
    Code.RATE_LIMITED: _R(
        "more than 600 calls a minute", "wait as long as Retry-After says", "read_inbox"
    ),
    Code.QUOTA_EXCEEDED: _R(
        "the organisation has used its 1000 mails of today", "go on tomorrow", "send_mail"
    ),
    Code.STORAGE_FULL: _R(
        "the disk of this installation is full",
        "nothing was done; repeat the call later",
        "send_mail",
    ),
    Code.ISOLATION_UNAVAILABLE: _R(
        "this machine cannot isolate a command",
        "tell the people who run this installation",
        "run_test",
        "coding",
    ),
    Code.DRIVER_UNAVAILABLE: _R(
        "no search provider is configured",
        "tell the people who run this installation",
        "web_search",
    ),
    Code.DATABASE_UNAVAILABLE: _R(
        DATABASE_UNAVAILABLE.message, DATABASE_UNAVAILABLE.next_action, "send_mail"
    ),
    Code.SERVER_STOPPING: _R(SERVER_STOPPING.message, SERVER_STOPPING.next_action, "send_mail"),
    Code.INTERNAL: _R(INTERNAL.message, INTERNAL.next_action, "send_mail"),
}
"""One refusal of each code."""


def refusal(code: Code) -> dict[str, Any]:
    """The envelope of an error with this code."""
    said = REFUSALS[code]
    return envelope(deny(code, said.message, said.next_action), tool=said.tool, mode=said.mode)


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
            known = VALUES.get(name)
            return max(schema.get("minimum", 1), known if isinstance(known, int) else 1)
        case "boolean", _:
            return True
        case _, "date-time":
            return TIME
        case _, "uuid":
            return "0197f0c4-5b1e-7c3a-9d58-2f6a1e4b7c90"
        case _:
            return str(VALUES.get(name) or "1" * schema.get("minLength", 1))
