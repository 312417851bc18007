"""The description itself: OpenAPI 3.1, whole, one path for each tool, each code at its status."""

import json
import re

import pytest
import schemathesis
from jsonschema import Draft202012Validator

from core.decision import Code, Deny, status_of
from tests.oracle.codes import STATUSES
from toolbox.answers import answer_denial
from toolbox.faces.openapi import document
from toolbox.registry import REGISTRY


@pytest.fixture(scope="module")
def told():
    return json.loads(json.dumps(document()))


def schemas_in(node, path=""):
    """Every schema of the document, with where it stands."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "schema":
                yield path, value
            if key == "schemas":
                yield from ((f"{path}/{name}", one) for name, one in value.items())
            yield from schemas_in(value, f"{path}/{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from schemas_in(value, f"{path}/{number}")


class TestTheDocument:
    def test_is_openapi_3_1(self, told):
        assert told["openapi"] == "3.1.0"
        schemathesis.openapi.from_dict(told).validate()

    def test_is_refused_where_it_is_not(self, told):
        broken = json.loads(json.dumps(told))
        del broken["paths"]["/api/v1/me"]["get"]["responses"]["200"]["description"]
        with pytest.raises(Exception, match="description"):
            schemathesis.openapi.from_dict(broken).validate()

    def test_holds_json_schemas_only(self, told):
        found = list(schemas_in(told))
        assert len(found) > 2 * len(REGISTRY.all())
        for path, schema in found:
            Draft202012Validator.check_schema(schema), path

    def test_points_to_nothing_that_is_not_there(self, told):
        targets = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(told)))
        assert len(targets) > 10
        for target in targets:
            node = told
            for step in target.split("/"):
                assert step in node, target
                node = node[step]

    def test_has_a_path_for_each_tool_and_no_other(self, told):
        paths = {path for path in told["paths"] if path.startswith("/api/v1/tools/")}
        assert paths == {f"/api/v1/tools/{tool.name}" for tool in REGISTRY.all()}

    def test_takes_of_each_tool_what_its_own_schema_takes(self, told):
        for tool in REGISTRY.all():
            body = told["paths"][f"/api/v1/tools/{tool.name}"]["post"]["requestBody"]
            shown = body["content"]["application/json"]["schema"]
            assert shown["properties"].keys() == tool.input_schema["properties"].keys()
            assert shown["additionalProperties"] is False
            assert body["required"] == bool(tool.input_schema.get("required"))


class TestRefusals:
    def test_carry_the_codes_of_the_wire_by_status(self, told):
        for status, codes in STATUSES.items():
            response = told["components"]["responses"][f"Refused{status}"]
            schema = response["content"]["application/json"]["schema"]
            assert set(schema["allOf"][1]["properties"]["error_code"]["enum"]) == set(codes.split())

    def test_are_all_told_at_every_tool(self, told):
        for tool in REGISTRY.all():
            responses = told["paths"][f"/api/v1/tools/{tool.name}"]["post"]["responses"]
            assert set(responses) == {"200", *(str(status_of(code)) for code in Code)}


class TestExamples:
    @pytest.mark.parametrize("tool", REGISTRY.all(), ids=lambda tool: tool.name)
    def test_of_a_tool_are_what_it_takes_and_returns(self, told, tool):
        operation = told["paths"][f"/api/v1/tools/{tool.name}"]["post"]
        tool.params.model_validate(
            operation["requestBody"]["content"]["application/json"]["example"]
        )
        answer = operation["responses"]["200"]["content"]["application/json"]
        tool.result_type.validate_json(json.dumps(answer["example"]["result"]))
        Draft202012Validator({**answer["schema"], "components": told["components"]}).validate(
            answer["example"]
        )

    def test_are_at_every_operation(self, told):
        for path, methods in told["paths"].items():
            for operation in methods.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {}).get("application/json")
                    assert content is None or "example" in content, (path, status)

    def test_show_each_error(self, told):
        shown = {}
        for response in told["components"]["responses"].values():
            content = response["content"]["application/json"]
            validator = Draft202012Validator(
                {**content["schema"], "components": told["components"]}
            )
            for code, example in content["examples"].items():
                validator.validate(example["value"])
                shown[code] = example["value"]["error_code"]
        assert shown == {code.value: code.value for code in Code}


class TestHeaders:
    @pytest.mark.parametrize("code", Code)
    def test_of_a_refusal_are_described(self, told, code):
        deny = Deny(code, "", details={"retry_after": 1, "allow": ["GET"]})
        described = told["components"]["responses"][f"Refused{status_of(code)}"]
        assert answer_denial(deny).headers.keys() <= described.get("headers", {}).keys()


def objects_without_fields(schema, name=""):
    """The names of all objects in a JSON schema whose fields it does not say."""
    if isinstance(schema, list):
        return {found for each in schema for found in objects_without_fields(each, name)}
    if not isinstance(schema, dict):
        return set()
    is_free = schema.get("type") == "object" and "properties" not in schema
    inner = {
        found
        for key, each in schema.items()
        for found in objects_without_fields(each, key if key not in ("items", "anyOf") else name)
    }
    return inner | ({name} if is_free else set())


class TestResults:
    def test_name_the_fields_of_every_object_but_metadata(self):
        found = {tool.name: objects_without_fields(tool.result_type.json_schema())
                 for tool in REGISTRY.all()}  # fmt: skip
        assert set().union(*found.values()) == {"metadata"}, found
