"""The API's own description, as Schemathesis tries it against the real site."""

import copy
import itertools
import re
from typing import Any

import schemathesis
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import negative_data_rejection

from tests.clients.staff import Staff, holder_of, stranger_to
from tests.oracle import tools as oracle
from toolbox.faces.openapi import document
from toolbox.registry import REGISTRY

SEED = 20260220
EVENTS = "/api/v1/events"  # never ends; tests/toolbox/test_faces.py reads it

# What a JSON schema cannot say, by hand: refusals of calls that the schema lets pass.
BEYOND = {
    r"cursor: no list gave you this cursor": "cursors are opaque",
    r"Invalid (requiredRole|roleFilter): ": "the organisation's own roles",
    r"owner: .* is no agent of this organisation": "the organisation's own agents",
    r"\w+: amount: Decimal input should have no more than \d+ (digits|decimal places)": "decimals",
    r"\w+: amount: Input should be greater than 0": "zero, written as text",
    r"body: .* is too (large|small) a number": "the ends of numbers",
    r"\w+: (deadline|expires_at): must lie in the years": "the calendar's ends",
    r"expires_at: must be a time in the future": "the clock",
    r"deadline: .* is in the past": "the clock",
    r"\w+: date_range: (must be a day|ends before it begins)": "the calendar",
    r"url: must be a plain http or https address": "the parts of an address",
    r"[a-zA-Z_]+: a text holds NUL or half a surrogate pair": "signs that are no text",
    r"(\w+: )?(subject|title|reason): it is blank": "signs that show nothing",
    r"\w+: [\w.]+: must hold more than spaces": "U+0085 is a space here, and not there",
    r"\w+: [\w.]+: Input should be a valid integer": "1.0 is an integer there, and not here",
    r"(case_submit: )?(content|outcome|evidence)[\w.]*: ": "the form of each stage",
    r"nothing to change was given": "one of several fields",
    r"submits: only a mail of type report": "two fields that go together",
    r"expires_at: work does not expire": "a field of some kinds of contract",
    r"(changes|amount|request): a contract of kind": "as above",
    r"kind: \w+ is never issued with": "the kinds that other tools issue",
    r"role: there is no role ": "the organisation's own roles, or a new kind by its own name",
    r"handle: .* is the name of another agent or role": "the organisation's own names",
    r"manage_backlog: body: (add|edit|remove) needs a": "what each action needs",
    r"manage_backlog: body: (list|add|edit|remove) takes no ": "what each action takes",
    r"manage_tools: (agent|tool|modes|reason): this action needs it": "what each action needs",
}

UNUSABLE = {"delegate_to", "next_frame", "return_result", "use_skill", "task_approve"}
"""Tools that no agent of NEXUS can use: it has no groups, no skills, and nothing to approve."""

_numbers = itertools.count()


OPERATIONS = tuple(
    (method, path)
    for path, methods in document()["paths"].items()
    for method in methods
    if path != EVENTS
)


def tried(operation: tuple[str, str], attempt: Any, api: Any, staff: Staff) -> None:
    """Make every call of one operation.

    Schemathesis makes all calls of all operations while tests are collected; here each test makes
    its own, so that who runs another file does not pay for it.
    """
    method, path = operation
    test = build_operation_test(
        config=api.config,
        operation=api[path][method],
        test_func=attempt,
        given_kwargs={},
        feedback=NO_FEEDBACK,
    )
    test(staff=staff)


def described(*, phase: str, examples: int = 1) -> Any:
    """The description, as Schemathesis makes calls of it, the same ones every time.

    In the phase `coverage` every field at, below and beyond each of its limits; in `fuzzing` so
    many made-up calls for each operation, right and wrong. The headers that all tools share are
    made up for `current_time` only.
    """
    told = copy.deepcopy(document())
    for tool in REGISTRY.all():
        if tool.name != "current_time":
            del told["paths"][f"/api/v1/tools/{tool.name}"]["post"]["parameters"]
    sources = {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}}
    phases: dict[str, Any] = {
        name: {"enabled": name == phase} for name in ("examples", "coverage", "fuzzing", "stateful")
    }
    phases["fuzzing"] |= sources
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "request-timeout": 60,
            "suppress-health-check": ["all"],  # how fast this machine is decides nothing
            "generation": {
                "deterministic": True,
                "max-examples": examples,
                "no-shrink": True,
                "allow-x00": False,
                "with-security-parameters": False,
            },
            "phases": phases,
            "checks": {
                "not_a_server_error": {"expected-statuses": ["2xx", "4xx", 503]},
                "positive_data_acceptance": {"expected-statuses": ["2xx", 400, 403, 404, 409, 503]},
                "negative_data_rejection": {"expected-statuses": [400, 404, 405, 413]},
            },
        }
    )
    return schemathesis.openapi.from_dict(told, config=config)


def try_as_holder(case: Case, staff: Staff) -> None:
    """One call by an agent who has the tool, held against the description.

    In coding mode where the tool needs it, else in coding and chat_safe by turns.
    """
    tool = _name_of(case)
    number = next(_numbers)
    handle = holder_of(tool)
    if _is_positive(case, ParameterLocation.HEADER):
        case.headers.pop("X-Nexus-Session", None)
        if tool in oracle.CODE or (number % 2 and tool not in oracle.OFFICE):
            case.headers["X-Nexus-Session"] = staff.coding(handle)
        if "Idempotency-Key" in case.headers:  # each case is a call of its own
            case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}{number}"
    if isinstance(case.body, dict) and "wait" in case.body and _has_good_body(case):
        case.body["wait"] = 0
    answer = case.call(base_url=staff.url, session=staff.http, headers=staff.headers(handle))
    # The gate answers before the parameters are read.
    excluded = [negative_data_rejection] if tool in UNUSABLE else []
    case.validate_response(answer, excluded_checks=excluded)
    if tool in UNUSABLE:
        assert answer.status_code in (400, 403, 405, 413), answer.text
        if answer.status_code == 403:
            assert answer.json()["error_code"] == "TOOL_NOT_BOUND"
    elif answer.status_code >= 300:
        _require_reason(case, tool, answer)


def try_as_stranger(case: Case, staff: Staff) -> None:
    """The same call by an agent who has it not, or not in this mode: refused whatever it says."""
    tool = _name_of(case)
    handle = holder_of(tool) if tool in oracle.CODE else stranger_to(tool)
    if handle is None:
        return
    case.headers.clear()
    answer = case.call(base_url=staff.url, session=staff.http, headers=staff.headers(handle))
    case.validate_response(answer, excluded_checks=[negative_data_rejection])
    assert answer.status_code in (400, 403, 405, 413), answer.text
    if answer.status_code == 403:
        assert answer.json()["error_code"] in ("TOOL_NOT_BOUND", "MODE_DENIED")


def _name_of(case: Case) -> str:
    return str(case.operation.definition.raw["operationId"])


def _is_positive(case: Case, location: ParameterLocation) -> bool:
    component = case.meta.components.get(location)
    return component is None or component.mode.is_positive


def _has_good_body(case: Case) -> bool:
    return _is_positive(case, ParameterLocation.BODY)


def _require_reason(case: Case, tool: str, answer: Any) -> None:
    """What the description leaves open: whose envelope it is, and why a good body is refused."""
    body = answer.json()
    if REGISTRY.get(tool):
        assert body["tool_name"] == tool
    assert body["message"]
    assert body["next_action"]
    if case.meta.generation.mode.is_positive and answer.status_code == 400:
        assert any(re.match(known, body["message"]) for known in BEYOND), body["message"]
    if not _has_good_body(case) and _is_positive(case, ParameterLocation.HEADER):
        assert answer.status_code in (400, 405, 413), body
