"""The JSON schema that editors use is generated from the forms."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

from orgchart.packs import json_schema
from tests.orgchart.world import ACME, PACKS

PAGE = Path(__file__).parents[2] / "docs/pack-schema.json"


def test_the_stored_schema_is_what_the_command_prints():
    out = StringIO()
    call_command("org", "schema", stdout=out)
    assert PAGE.read_text(encoding="utf-8") == out.getvalue()


def test_it_says_what_a_choice_may_be():
    role = json_schema()["$defs"]["RoleForm"]
    assert role["properties"]["level"] == {
        "maximum": 9,
        "minimum": 1,
        "title": "Level",
        "type": "integer",
    }
    assert role["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(ACME))
def test_it_accepts_the_small_pack(name):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(yaml.safe_load(ACME[name]), json_schema())


@pytest.mark.parametrize("path", sorted(PACKS.glob("**/*.yaml")), ids=str)
def test_it_accepts_what_is_shipped(path):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), json_schema())
