"""The API's page: everything that the description holds, from one source, and nothing secret."""

import gzip
import json
import re
from html import unescape

import pytest
from django.conf import settings
from django.test import Client
from jsonschema import Draft202012Validator

from core.decision import Code, status_of
from tests.admin.english import english_on
from toolbox.faces.docs.fields import field_of, fields_of
from toolbox.faces.docs.views import description
from toolbox.faces.event_types import EventFrame
from toolbox.faces.examples import REFUSALS, example_of
from toolbox.faces.openapi import document
from toolbox.faces.stream_events import KINDS, STREAM_EVENTS
from toolbox.registry import REGISTRY

NAMES_OF_OTHERS = {"Model Context Protocol", "Standard Webhooks", "Prometheus", "OpenAPI"}
LARGEST = 150_000  # bytes of a page before it is compressed
NAMES = ["", *(group.name for group in description().groups), "errors"]


def address_of(name):
    return f"/api/docs/{name}/" if name else "/api/docs/"


def html_of(name, **headers):
    answer = Client(HTTP_HOST="127.0.0.1").get(address_of(name), headers=headers)
    assert answer.status_code == 200, name
    return answer.content.decode()


@pytest.fixture(scope="module")
def told():
    return json.loads(json.dumps(document()))


@pytest.fixture(scope="module")
def pages():
    return {name: html_of(name) for name in NAMES}


class TestTheOverview:
    def test_names_every_path_with_its_method(self, told, pages):
        for path, methods in told["paths"].items():
            for method in methods:
                assert re.search(
                    rf'<b class="{method}">{method.upper()}</b> <code>{re.escape(path)}</code>',
                    pages[""],
                ), (method, path)

    def test_names_the_addresses_that_are_not_in_the_document(self, pages):
        for address in ("/mcp", "/api/v1/hooks/feedback/", "/api/schema/", "/healthz", "/metrics"):
            assert address in pages[""]


class TestAGroup:
    def test_shows_each_of_its_addresses_whole(self, told, pages):
        for path, methods in told["paths"].items():
            for operation in methods.values():
                page, name = pages[operation["tags"][0]], operation["operationId"]
                own = article(page, name)
                assert f"<code>{path}</code>" in own
                assert operation["summary"] in unescape(own)
                body = operation.get("requestBody", {}).get("content", {})
                for field in (
                    body.get("application/json", {}).get("schema", {}).get("properties", {})
                ):
                    assert f'<code class="name">{field}</code>' in own, (name, field)
                for status in operation["responses"]:
                    assert f"#status-{status}" in own or status in ("200", "201"), (name, status)

    def test_shows_every_tool_with_its_answer(self, told, pages):
        for tool in REGISTRY.all():
            own = article(pages[str(tool.group)], tool.name)
            result = told["paths"][f"/api/v1/tools/{tool.name}"]["post"]["responses"]["200"]
            fields = fields_of(
                result["content"]["application/json"]["schema"]["properties"]["result"],
                told["components"]["schemas"],
            )
            assert fields or "An empty object" in own, tool.name
            for field in fields:
                assert f'<code class="name">{field.name}</code>' in own, (tool.name, field.name)

    def test_shows_examples_of_call_answer_and_refusal(self, told, pages):
        own = unescape(article(pages["mail"], "send_mail"))
        operation = told["paths"]["/api/v1/tools/send_mail"]["post"]
        asked = operation["requestBody"]["content"]["application/json"]["example"]
        answered = operation["responses"]["200"]["content"]["application/json"]["example"]
        assert json.dumps(asked) in own
        assert json.dumps(answered, indent=2) in own
        assert '"error_code": "INVALID_PARAMS"' in own
        assert '"tool_name": "send_mail"' in own

    def test_offers_to_fill_in_what_the_schema_takes(self, told):
        components = {"components": told["components"]}
        for group in description().groups:
            for one in group.addresses:
                if not one.request:
                    continue
                body = told["paths"][one.path]["post"]["requestBody"]["content"]["application/json"]
                for text in (one.request, one.full_request):
                    Draft202012Validator({**body["schema"], **components}).validate(
                        json.loads(text)
                    )

    def test_of_no_name_is_a_page_of_the_site(self, db):
        answer = Client(HTTP_HOST="127.0.0.1").get("/api/docs/nothing/")
        assert answer.status_code == 404
        assert "text/html" in answer["Content-Type"]


class TestEvents:
    def test_are_all_shown_with_their_fields(self, pages):
        for event in STREAM_EVENTS:
            own = article(pages["events"], str(event.action))
            assert event.summary in unescape(own)
            for name in EventFrame.__annotations__:
                assert f'<code class="name">{name}</code>' in own, (event.action, name)
            for name in event.details.__annotations__:
                assert f'<code class="name">{name}</code>' in own, (event.action, name)
        assert "agent.paused" in pages["events"]
        for kind in (*KINDS, "agent"):
            assert f'id="event-{kind}"' in pages["events"]

    def test_are_what_the_specification_names(self):
        rule = (settings.BASE_DIR / "docs/spec/wire.md").read_text().partition('id="wire-11"')[2]
        rule = rule.partition("<a id=")[0]
        named = set(re.findall(r"`(\w+)`", rule)) - {"GET /api/v1/events", "Last-Event-ID"}
        assert named == {*KINDS, "agent"}

    def test_have_examples_that_fit_their_schema(self, told):
        kinds = told["paths"]["/api/v1/events"]["get"]["x-event-types"]
        for events in kinds.values():
            for action, event in events.items():
                schema = {**event["schema"], "components": told["components"]}
                Draft202012Validator(schema).validate(event["example"]), action


class TestRefusals:
    def test_are_all_shown_at_their_status(self, pages):
        for code in Code:
            section = pages["errors"].partition(f'id="status-{status_of(code)}"')[2]
            section = section.partition("<section")[0]
            own = unescape(article(section, code.value))
            assert REFUSALS[code].message in own
            assert REFUSALS[code].next_action in own
            assert f'"error_code": "{code.value}"' in own

    def test_name_tools_that_there_are(self):
        named = {one.tool for one in REFUSALS.values()} - {""}
        assert named - {tool.name for tool in REGISTRY.all()} == {"send_male"}


class TestFields:
    def test_of_a_type_that_contains_itself_end(self):
        node = {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Node"}}}
        field = field_of("top", {"$ref": "#/components/schemas/Node"}, {"Node": node},
                         is_required=True)  # fmt: skip
        depth = 0
        while field.fields:
            field, depth = field.fields[0], depth + 1
        assert 2 < depth < 10

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"type": "string"}, "string"),
            ({"type": "string", "format": "date-time"}, "date-time"),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
            ({"type": "array", "items": {"type": "string"}}, "list of string"),
            ({"enum": ["a", "b"]}, "string"),
            ({"const": True}, "true"),
            ({}, "any"),
        ],
    )
    def test_say_their_type(self, schema, words):
        assert field_of("x", schema, {}, is_required=False).type == words

    def test_say_their_limits_default_and_values(self):
        schema = {"type": "string", "maxLength": 5, "enum": ["a", "b"], "default": "a"}
        field = field_of("x", schema, {}, is_required=False)
        assert ([*map(str, field.limits)], field.default, field.values) == (
            ["at most 5 characters"],
            '"a"',
            ["a", "b"],
        )

    @pytest.mark.parametrize(
        ("schema", "limits"),
        [
            (
                {"minLength": 1, "maxLength": 64, "pattern": r"\S"},
                ["1 to 64 characters", "not blank"],
            ),
            ({"minItems": 2, "maxItems": 2}, ["2 items"]),
            ({"minimum": 1}, ["at least 1"]),
            ({"exclusiveMinimum": 0, "maximum": 9}, ["at most 9", "more than 0"]),
            ({"pattern": "^a$"}, ["^a$"]),
            ({}, []),
        ],
    )
    def test_say_their_limits_in_words(self, schema, limits):
        found = field_of("x", schema, {}, is_required=False).limits
        assert [*map(str, found)] == limits

    def test_leave_out_the_rule_that_a_description_names(self):
        field = field_of("x", {"description": "A state (Spec: tasks 2)."}, {}, is_required=False)
        assert field.description == "A state."


class TestInChinese:
    def test_limits_are_translated(self):
        client = Client(HTTP_HOST="127.0.0.1", HTTP_ACCEPT_LANGUAGE="zh-CN")
        html = client.get("/api/docs/mail/").content.decode()
        assert '<span class="limit">1 至 64 个字符</span>' in html
        assert not re.search(
            r'class="limit"[^>]*>[^<]*(characters|at most|at least|not blank)', html
        )


class TestEveryPage:
    @pytest.mark.parametrize("name", NAMES)
    def test_is_light(self, pages, name):
        assert len(pages[name].encode()) <= LARGEST

    def test_is_sent_compressed_and_once(self):
        client = Client(HTTP_HOST="127.0.0.1")
        first = client.get("/api/docs/contract/", headers={"Accept-Encoding": "gzip"})
        assert first["Content-Encoding"] == "gzip"
        assert len(first.content) < 25_000
        assert b"create_contract" in gzip.decompress(first.content)
        again = client.get("/api/docs/contract/", headers={"If-None-Match": first["ETag"]})
        assert again.status_code == 304
        assert "no-cache" in first["Cache-Control"]

    @pytest.mark.parametrize("address", ["/api/schema/", "/api/docs/contract/"])
    def test_is_compressed_once_for_everybody(self, address, monkeypatch):
        client = Client(HTTP_HOST="127.0.0.1", headers={"Accept-Encoding": "gzip"})
        first = client.get(address)
        assert first["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in first["Vary"]
        monkeypatch.setattr(gzip, "compress", None)
        monkeypatch.setattr(gzip, "GzipFile", None)
        monkeypatch.setattr("toolbox.faces.docs.views.to_json", None)
        again = client.get(address)
        assert (again.content, again["ETag"]) == (first.content, first["ETag"])
        assert client.get(address, headers={"If-None-Match": first["ETag"]}).status_code == 304

    def test_asks_the_database_nothing(self, django_assert_num_queries, db):
        with django_assert_num_queries(0):
            html_of("task")

    def test_runs_only_its_own_script_and_calls_only_this_site(self, pages):
        answer = Client(HTTP_HOST="127.0.0.1").get("/api/docs/mail/")
        policy = dict(
            part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";")
        )
        for kind in ("script-src", "style-src", "connect-src", "img-src"):
            assert policy[kind] == "'self'", kind
        assert policy["default-src"] == "'none'"
        for name, html in pages.items():
            assert html.count("<script") == 1, name
            assert "<style" not in html
            assert not re.search(r"\sstyle=|\son\w+=", html), name
            assert not re.findall(r'(?:src|href)="(?:https?:)?//', html), name

    def test_says_the_same_to_everybody(self, admin_client):
        assert admin_client.get("/api/docs/mail/").content.decode() == html_of("mail")

    @pytest.mark.parametrize("name", NAMES)
    def test_is_read_in_chinese_with_the_api_in_english(self, name):
        html = html_of(name, **{"Accept-Language": "zh-CN"})
        assert '<html lang="zh-hans">' in html
        assert english_on(html, NAMES_OF_OTHERS) == []

    def test_points_only_to_places_that_are_there(self, pages):
        ids = {address_of(name): set(re.findall(r' id="([^"]+)"', html))
               for name, html in pages.items()}  # fmt: skip
        for name, html in pages.items():
            for target in re.findall(r'href="(/api/docs/[^"]*|#[^"]*)"', html):
                path, _, fragment = target.partition("#")
                known = ids[path or address_of(name)]
                assert not fragment or fragment in known, (name, target)

    def test_gives_no_two_elements_one_id(self, pages):
        for name, html in pages.items():
            found = re.findall(r' id="([^"]+)"', html)
            assert len(found) == len(set(found)), (name, [i for i in found if found.count(i) > 1])


def article(html, name):
    """The part of a page about one address, event or code."""
    found = re.search(rf'<article id="{re.escape(name)}".*?</article>', html, re.DOTALL)
    assert found, name
    return found[0]


def test_whole_examples_are_made_of_every_field(told):
    schema = told["paths"]["/api/v1/tools/send_mail"]["post"]["requestBody"]["content"]
    schema = schema["application/json"]["schema"]
    whole = example_of(schema, told["components"]["schemas"])
    assert whole.keys() == schema["properties"].keys()
