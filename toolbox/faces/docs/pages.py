"""What the pages of the API's description show, read from the OpenAPI document."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from toolbox.faces.docs.fields import Field, field_of, fields_of
from toolbox.faces.examples import example_of

Document = Mapping[str, Any]

JSON = "application/json"
CALLER, EVENTS = "caller", "events"
FIRST = (CALLER, EVENTS, "mail", "contract", "task")
"""Groups that come first; the others follow by name."""
WORDS: Mapping[str, tuple[str | Promise, str | Promise]] = {
    CALLER: (
        _("The caller"),
        _("Who the key says you are, which tools you have now, and why a call would be refused."),
    ),
    EVENTS: (
        _("Event stream"),
        _("What concerns you, as it happens. A stream that breaks goes on where it ended."),
    ),
    "mail": (_("Mail"), _("Send and read mail, and bring a problem to your superior.")),
    "contract": (_("Contracts"), _("Issue, accept, submit, judge and close contracts.")),
    "task": (_("Tasks"), _("The shared list of tasks: create, take, do, comment and approve.")),
    "code": (_("Code"), _("Files, branches, tests, images and deployments, in a sandbox.")),
    "delegation": (_("Delegation"), _("Ask another agent for a piece of work and wait for it.")),
    "document": (_("Documents"), _("Notes, reports and product requirements.")),
    "governance": (_("Cases"), _("Cases of the constitution: one office after the other.")),
    "memory": (_("Memory"), _("What an agent remembers between its sessions.")),
    "organisation": (_("Organisation"), _("Agents, their places, and which tools they have.")),
    "world": (_("The world outside"), _("The time, the web, and its pages.")),
}
"""Of each group its title, and what its addresses are for."""


@dataclass(frozen=True, slots=True)
class RefusalShown:
    """An example of one code: the answer, and its two sentences."""

    message: str
    next_action: str
    text: str


@dataclass(frozen=True, slots=True)
class StatusRefusals:
    """The refusals of one status, by code."""

    status: str
    examples: Mapping[str, RefusalShown]


@dataclass(frozen=True, slots=True)
class EventShown:
    """One event of the stream."""

    action: str
    summary: str
    fields: Sequence[Field]
    example: str


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event: what a client listens to."""

    name: str
    events: Sequence[EventShown]


@dataclass(frozen=True, slots=True)
class Address:
    """One operation: what it takes, what it answers, and what it may be refused with."""

    name: str
    method: str
    path: str
    group: str
    summary: str
    tool: Mapping[str, Any]
    parameters: Sequence[Field]
    body: Sequence[Field]
    has_body: bool
    answer: Sequence[Field]
    status: str
    media: str
    statuses: Sequence[str]
    request: str
    full_request: str
    curl: str
    answer_example: str
    refusal_example: str
    kinds: Sequence[EventKind]


@dataclass(frozen=True, slots=True)
class AddressGroup:
    """The addresses of one subject; one page."""

    name: str
    addresses: Sequence[Address]

    @property
    def title(self) -> str:
        """Its name as a person reads it."""
        return str(WORDS.get(self.name, (self.name.capitalize(), ""))[0])

    @property
    def about(self) -> str:
        """What its addresses are for."""
        return str(WORDS.get(self.name, ("", ""))[1])


@dataclass(frozen=True, slots=True)
class Description:
    """The whole description, as its pages show it."""

    groups: Sequence[AddressGroup]
    refusals: Sequence[StatusRefusals]
    error_fields: Sequence[Field]

    def group(self, name: str) -> AddressGroup | None:
        """The group of that name."""
        return next((group for group in self.groups if group.name == name), None)

    @property
    def events(self) -> Address:
        """The address of the event stream."""
        return next(one for group in self.groups for one in group.addresses if one.kinds)


def describe(document: Document) -> Description:
    """Read the document into groups of addresses."""
    found: dict[str, list[Address]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            address = _address(document, path, method, operation)
            found.setdefault(address.group, []).append(address)
    order = [name for name in FIRST if name in found]
    order += sorted(set(found) - set(FIRST))
    components = document["components"]
    refusals = [
        StatusRefusals(
            name.removeprefix("Refused"),
            {code: _refusal(example["value"]) for code, example in _json(one)["examples"].items()},
        )
        for name, one in components["responses"].items()
    ]
    return Description(
        [AddressGroup(name, found[name]) for name in order],
        refusals,
        fields_of(components["schemas"]["ErrorBody"], components["schemas"]),
    )


def _address(document: Document, path: str, method: str, operation: Mapping[str, Any]) -> Address:
    components = document["components"]
    schemas = components["schemas"]
    status = next(iter(operation["responses"]))
    media, content = next(iter(operation["responses"][status]["content"].items()))
    body = operation.get("requestBody", {})
    taken = body.get("content", {}).get(JSON, {})
    tool = operation.get("x-tool", {})
    answer = content["schema"]["properties"]["result"] if tool else content["schema"]
    return Address(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        group=operation["tags"][0],
        summary=operation["summary"],
        tool=tool,
        parameters=[_parameter(one, components) for one in operation["parameters"]],
        body=fields_of(taken.get("schema", {}), schemas),
        has_body=bool(body),
        answer=fields_of(answer, schemas),
        status=status,
        media=media,
        statuses=[one for one in operation["responses"] if one != status],
        request=_pretty(taken["example"]) if taken else "",
        full_request=_pretty(example_of(taken["schema"], schemas)) if taken else "",
        curl=_curl(method, path, taken.get("example"), media),
        answer_example=_pretty(content["example"]) if media == JSON else "",
        refusal_example=_refusal_example(components, operation["operationId"] if tool else ""),
        kinds=_kinds(operation.get("x-event-types", {}), schemas),
    )


def _parameter(parameter: Mapping[str, Any], components: Mapping[str, Any]) -> Field:
    if "$ref" in parameter:
        parameter = components["parameters"][parameter["$ref"].rpartition("/")[2]]
    said = {"description": parameter["description"]} if "description" in parameter else {}
    return field_of(
        parameter["name"],
        {**parameter["schema"], **said},
        components["schemas"],
        is_required=parameter.get("required", False),
        place=parameter["in"],
    )


def _kinds(told: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[EventKind]:
    return [
        EventKind(
            kind,
            [
                EventShown(
                    action,
                    event["summary"],
                    fields_of(event["schema"], schemas),
                    _stream_text(kind, event["example"]),
                )
                for action, event in events.items()
            ],
        )
        for kind, events in told.items()
    ]


def _stream_text(kind: str, example: Any) -> str:
    """The event as it comes over the wire, its data on lines of its own to be read."""
    return f"event: {kind}\ndata: {_pretty(example)}"


def _refusal_example(components: Mapping[str, Any], tool: str) -> str:
    """The envelope of a call with wrong parameters, or of a key that is not known."""
    status, code = ("400", "INVALID_PARAMS") if tool else ("401", "UNAUTHENTICATED")
    example = dict(_json(components["responses"][f"Refused{status}"])["examples"][code]["value"])
    if tool:
        example |= {
            "tool_name": tool,
            "message": f"{tool}: unknown_field: Extra inputs are not permitted",
        }
    return _pretty(example)


def _refusal(example: Mapping[str, Any]) -> RefusalShown:
    return RefusalShown(example["message"], example["next_action"], _pretty(example))


def _curl(method: str, path: str, body: Any, media: str) -> str:
    """The call for a shell; the key is a variable."""
    lines = [f"curl $NEXUS{path}", '-H "Authorization: Bearer $KEY"']
    if media != JSON:
        lines[0] = f"curl -N $NEXUS{path}"
    if method == "post":
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(json.dumps(body))}"]
    return " \\\n  ".join(lines)


def _json(response: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = response["content"][JSON]
    return content


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
