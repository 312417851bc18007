"""A call is no longer than the parameters of its tool can be (Spec: tools 29)."""

import json

import pytest
from django.utils import timezone

from tests.company import load_company
from toolbox import door
from toolbox.body_sizes import SLACK, largest_body
from toolbox.faces.rest import formats
from toolbox.registry import REGISTRY

FREE = {"case_submit", "delegate_to", "return_result", "task_create", "task_update"}
UNBOUNDED = {*FREE, "write_verdict"}
"""Tools with an object or a list of the caller's own: the bound of all bodies holds for them."""


def longest(schema, defs):  # noqa: PLR0911
    """A value as long as the schema allows, but for what has a form of its own."""
    if "$ref" in schema:
        return longest(defs[schema["$ref"].rpartition("/")[2]], defs)
    choices = [longest(one, defs) for one in schema.get("anyOf", [])]
    if choices:
        return max(choices, key=lambda value: len(json.dumps(value)))
    if "enum" in schema or "const" in schema:
        return max(schema.get("enum", [schema.get("const")]), key=lambda value: len(str(value)))
    match schema.get("type"):
        case "string":
            return "\U0001f600" * schema.get("maxLength", 64)
        case "array":
            return [longest(schema["items"], defs)] * schema["maxItems"]
        case "object":
            return {name: longest(one, defs) for name, one in schema.get("properties", {}).items()}
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return -(2**63)


@pytest.mark.parametrize("tool", REGISTRY.all(), ids=lambda tool: tool.name)
class TestLargestBody:
    def test_has_room_for_everything_that_fits(self, tool):
        bound = largest_body(tool.input_schema)
        assert (bound is None) == (tool.name in UNBOUNDED)
        if bound is not None:
            schema = tool.input_schema
            value = longest(schema, schema.get("$defs", {}))
            assert len(json.dumps(value)) <= bound - SLACK


class TestABound:
    @pytest.mark.parametrize(
        "part",
        [
            {},
            {"type": "string"},
            {"type": "string", "pattern": r"\S"},
            {"type": "string", "pattern": "^[a-z]{2,}$"},
            {"type": "array", "items": {"type": "null"}},
            {"type": "array", "maxItems": 2},
            {"type": "object"},
            {"type": "object", "additionalProperties": {"type": "null"}},
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
        ],
    )
    def test_is_none_where_a_part_has_none(self, part):
        whole = {"type": "object", "additionalProperties": False, "properties": {"a": part}}
        assert largest_body(whole) is None


@pytest.mark.django_db
class TestACallThatIsTooLong:
    BODY = {"limit": 5, "filler": "x" * 20_000}

    def test_is_refused_before_its_body_is_read(self, monkeypatch):
        company = load_company("nexus")
        monkeypatch.setattr(formats, "read_object", None)
        answer = company.call("backend_worker", "read_inbox", **self.BODY)
        assert (answer.status, answer.code) == (413, "TOO_LARGE")
        assert "read_inbox may have" in answer.body["message"]

    def test_is_refused_by_every_face(self):
        company = load_company("nexus")
        caller = company.caller("backend_worker")
        answer = door.call(caller, "read_inbox", self.BODY, now=timezone.now())
        assert (answer.status, answer.body["error_code"]) == (413, "TOO_LARGE")

    def test_that_is_only_a_little_too_long_is_told_its_field(self):
        company = load_company("nexus")
        answer = company.call("backend_worker", "read_inbox", limit=5, filler="x")
        assert (answer.status, answer.code) == (400, "INVALID_PARAMS")
