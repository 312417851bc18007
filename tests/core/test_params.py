"""Shared parameter types: what their JSON schema describes is what they accept."""

import json
import re
from decimal import Decimal

import pytest
from pydantic import ValidationError

from core.params import Amount, Params, Reason, Title


class Budget(Params):
    amount: Amount


NUMBER, TEXT = Budget.model_json_schema()["properties"]["amount"]["anyOf"]

ACCEPTED = ["1", "0.01", "10.5", "1500", "1500.00", "999999999999999", "1e3", '"1"', '"0.01"',
            '"1500.00"', '"007"', '"999999999999999.99"']  # fmt: skip
OUTSIDE = ["0", "-1", "-0.01", "1e15", "999999999999999.5", "1000000000000000", "1e300",
           '"-1"', '"1e3"', '"1E2"', '"+5"', '" 5"', '"5 "', '"5\\n"', '".5"', '"5."', '"1_000"',
           '"1,5"', '"\\u0661"', '"1000000000000000"', '"0.001"', '""', '"NaN"', '"Infinity"',
           "true", "false", "null", "[]", "{}"]  # fmt: skip


def is_described(value):
    """Whether the JSON schema describes a value."""
    if isinstance(value, str):
        return re.search(TEXT["pattern"].replace("$", r"\Z"), value) is not None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return NUMBER["exclusiveMinimum"] < value <= NUMBER["maximum"]


class Named(Params):
    title: Title = "T"
    reason: Reason = "R"


class TestATextThatIsAsked:
    @pytest.mark.parametrize("field", ["title", "reason"])
    @pytest.mark.parametrize("text", ["", " ", "\u200b", "\u2060\ufeff", "\u3164", " \u2800"])
    def test_shows_something(self, field, text):
        with pytest.raises(ValidationError):
            Named(**{field: text})
        assert Named(**{field: f"{text}任务"})


class TestAmount:
    @pytest.mark.parametrize("sent", ACCEPTED)
    def test_accepts_what_its_schema_describes(self, sent):
        value = json.loads(sent)
        assert is_described(value)
        assert Budget(amount=value).amount == Decimal(str(value))

    @pytest.mark.parametrize("sent", OUTSIDE)
    def test_refuses_everything_else(self, sent):
        value = json.loads(sent)
        assert not is_described(value)
        with pytest.raises(ValidationError):
            Budget(amount=value)

    @pytest.mark.parametrize("sent", ["0.001", "1.005", '"0"', '"0.00"'])
    def test_refuses_what_no_json_schema_can_say(self, sent):
        with pytest.raises(ValidationError):
            Budget(amount=json.loads(sent))
