"""The canonical form and the digest: total over what callers send, sensitive to every field."""

import json
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.events import SHORT, Event, EventOutcome, UnrecordableEvent, text
from ledger import sql
from ledger.canonical import FIELDS, LONG, canonical, digest, digest_fields, fields, normal, parse
from tests.ledger.strategies import details, events, storable
from tests.ledger.world import NOW, make_event


class TestFields:
    def test_are_all_those_of_an_event_in_the_order_of_the_insert(self):
        names = set(fields(make_event()))
        assert names == {field.name for field in dataclass_fields(Event)}
        assert tuple(fields(make_event())) == FIELDS
        assert (*FIELDS, "digest") == tuple(sql.TYPES)

    def test_are_plain_values(self):
        class Code(StrEnum):
            MODE_DENIED = "MODE_DENIED"

        class Level(IntEnum):
            CEO = 1

        values = fields(make_event(code=Code.MODE_DENIED, details={"level": Level.CEO}))
        assert type(values["code"]) is str
        assert type(values["decision"]) is str
        assert type(values["details"]["level"]) is int

    @given(events)
    def test_survive_json(self, event):
        values = fields(event)
        assert json.loads(canonical(values)) == values

    @given(details)
    def test_of_details_are_the_same_after_a_second_pass_and_after_text(self, value):
        once = normal(value)
        assert canonical(normal(once)) == canonical(once)
        assert canonical(parse(canonical(once))) == canonical(once)


class TestText:
    def test_of_hostile_strings_is_storable(self):
        assert text("a\x00b\ud800c") == "a\ufffdb\ufffdc"
        assert normal({"k\x00": ["\udfff"]}) == {"k\ufffd": ["\ufffd"]}

    def test_is_cut_where_it_is_too_long(self):
        assert text("x" * SHORT) == "x" * SHORT
        assert text("x" * (SHORT + 1)) == "x" * (SHORT - 1) + "…"
        assert len(fields(make_event(reason="x" * 10_000))["reason"]) == LONG

    @given(st.text(), st.integers(1, 20))
    def test_is_the_same_after_a_second_pass(self, value, limit):
        assert text(text(value, limit), limit) == text(value, limit)

    def test_that_is_no_text_is_refused(self):
        for wrong in (None, 7, b"x", ["x"]):
            with pytest.raises(UnrecordableEvent):
                fields(make_event(tool=wrong))


class TestRefuses:
    @pytest.mark.parametrize(
        "value",
        [
            float("nan"),
            float("inf"),
            -float("inf"),
            2.0**53,
            1e300,
            2**63,
            -(2**63),
            b"bytes",
            {1: "key"},
            {None: "key"},
            {"a": {2, 3}},
            NOW,
            complex(1, 2),
        ],
        ids=repr,
    )
    def test_details_without_an_exact_form(self, value):
        with pytest.raises(UnrecordableEvent):
            fields(make_event(details={"value": value}))

    def test_details_that_are_nested_too_deep(self):
        deep: object = "bottom"
        for _ in range(10_000):
            deep = [deep]
        with pytest.raises(UnrecordableEvent):
            fields(make_event(details={"deep": deep}))

    def test_a_time_without_a_zone(self):
        with pytest.raises(UnrecordableEvent):
            fields(make_event(at=datetime(2026, 1, 1)))  # noqa: DTZ001 -- the case itself

    def test_a_time_outside_the_calendar(self):
        with pytest.raises(UnrecordableEvent):
            fields(make_event(at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))))

    @pytest.mark.parametrize("value", [True, 2**63, -(2**63), 1.0, "1"])
    @pytest.mark.parametrize("name", ["organisation_id", "policy_version", "for_agent_id"])
    def test_numbers_that_are_none(self, name, value):
        with pytest.raises(UnrecordableEvent):
            fields(make_event(**{name: value}))

    @pytest.mark.parametrize("stored", ["{", '{"a": 1e400}', '{"a": 0.10000000000000000000001}'])
    def test_stored_details_that_no_event_had(self, stored):
        with pytest.raises(UnrecordableEvent):
            parse(stored)


class TestDigest:
    def test_is_pinned(self):
        """A verifier in another language, or of another year, computes the same."""
        event = make_event(
            id=UUID(int=7),
            reason="可以 – yes",
            details={"b": [1, 2.5, None, True], "a": {"z": "\u2028", "y": 3.0}},
            for_agent_id=5,
        )
        form = (
            '{"action":"mail.delivered","actor":"agent:backend_worker","args_digest":"",'
            '"at":"2026-11-21T10:30:00.000000+00:00","code":"","decision":"allow",'
            '"details":{"a":{"y":3,"z":"\u2028"},"b":[1,2.5,null,true]},"for_agent_id":5,'
            '"id":"00000000-0000-0000-0000-000000000007","kind":"","organisation_id":1,'
            '"policy_version":null,"reason":"可以 – yes","request_id":"","session_id":"",'
            '"subject":"mail:MAIL-1","tool":""}'
        )
        assert canonical(fields(event)) == form
        assert digest(event) == sha256(b"nexus.ledger.event.v1\x00" + form.encode()).digest()

    @given(events, events, st.sampled_from(FIELDS))
    def test_changes_with_every_field(self, event, other, name):
        changed = replace(event, **{name: getattr(other, name)})
        same = canonical(fields(event)[name]) == canonical(fields(changed)[name])
        assert (digest(event) == digest(changed)) is same

    @pytest.mark.parametrize("name", FIELDS)
    def test_misses_no_field(self, name):
        event = make_event(id=UUID(int=1))
        other: dict[str, object] = {
            "id": UUID(int=2),
            "at": NOW + timedelta(microseconds=1),
            "decision": EventOutcome.DENY,
            "details": {"x": None},
            "organisation_id": 2,
            "policy_version": 0,
            "for_agent_id": 0,
        }
        assert digest(replace(event, **{name: other.get(name, "x")})) != digest(event)

    @given(storable, storable)
    def test_does_not_let_text_move_between_fields(self, first, second):
        assume(second)
        moved = make_event(id=UUID(int=1), tool=first + second, subject="")
        kept = make_event(id=UUID(int=1), tool=first, subject=second)
        assert digest(moved) != digest(kept) or (first + second == first)

    def test_is_the_same_for_the_same_moment_in_any_zone(self):
        there = NOW.astimezone(timezone(timedelta(hours=8)))
        event = make_event()
        assert digest(event) == digest(replace(event, at=there))

    def test_does_not_depend_on_the_order_of_details(self):
        event = make_event(details={"a": 1, "b": 2})
        assert digest(event) == digest(replace(event, details={"b": 2, "a": 1}))

    def test_of_one_event_is_not_that_of_the_next(self):
        assert digest(make_event()) != digest(make_event())

    @given(events)
    def test_is_that_of_its_fields_and_of_its_parameters(self, event):
        assert digest(event) == digest_fields(fields(event)) == sql.params(event)["ev_digest"]
