"""The door when the database breaks a deadlock, and when something of ours breaks."""

from dataclasses import replace

import pytest
from django.db import OperationalError

from core.database import BROKEN, TRIES
from mailroom.models import Mail
from toolbox import door
from toolbox.registry import REGISTRY

MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}
KEY = {"Idempotency-Key": "once"}


class Broken(Exception):
    """What psycopg raises, as far as anybody looks."""

    def __init__(self, sqlstate):
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


@pytest.fixture
def breaking(monkeypatch):
    """Break the next runs with these SQLSTATEs, one after the other; the parameters they had."""
    seen = []
    run = door.run

    def arrange(*sqlstates):
        left = list(sqlstates)

        def broken(caller, name, params, *, now):
            seen.append(dict(params))
            if left:
                raise OperationalError("broken") from Broken(left.pop(0))
            return run(caller, name, params, now=now)

        monkeypatch.setattr(door, "run", broken)
        return seen

    return arrange


class TestABrokenDeadlock:
    @pytest.mark.parametrize("headers", [None, KEY], ids=["plain", "idempotent"])
    @pytest.mark.parametrize("sqlstate", sorted(BROKEN))
    def test_is_tried_again_with_the_same_parameters(self, nexus, breaking, sqlstate, headers):
        seen = breaking(sqlstate, sqlstate)
        assert nexus.call("backend_worker", "send_mail", headers, **MAIL).code == "OK"
        assert seen == [MAIL] * TRIES
        assert Mail.objects.count() == 1

    def test_is_an_interruption_when_it_stays(self, nexus, breaking):
        seen = breaking(*["40P01"] * TRIES)
        answer = nexus.call("backend_worker", "send_mail", **MAIL)
        assert (answer.status, answer.code) == (503, "DATABASE_UNAVAILABLE")
        assert len(seen) == TRIES
        assert not Mail.objects.exists()

    def test_is_no_second_review_run_or_build(self, nexus, breaking, monkeypatch):
        """What a tool did outside of the database was there, and was done once more."""
        outside = replace(REGISTRY.get("send_mail"), acts_outside=True)
        monkeypatch.setitem(REGISTRY._tools, "send_mail", outside)
        seen = breaking("40P01")
        answer = nexus.call("backend_worker", "send_mail", KEY, **MAIL)
        assert (answer.status, answer.code, len(seen)) == (503, "DATABASE_UNAVAILABLE", 1)
        again = nexus.call("backend_worker", "send_mail", KEY, **MAIL)
        assert (again.code, len(seen)) == ("IDEMPOTENCY_MISMATCH", 1)


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("params", "field", "said"),
        [
            ({"subject": " \t"}, "subject", "must hold more than spaces"),
            ({"attachments": ["a"]}, "attachments.0", "must be an object"),
            ({"reply_to": 7}, "reply_to", "Input should be a valid string"),
        ],
    )
    def test_is_said_in_words_that_need_no_python(self, nexus, params, field, said):
        answer = nexus.call("backend_worker", "send_mail", **{**MAIL, **params})
        assert (answer.code, answer.body["details"]) == ("INVALID_PARAMS", {field: said})
        assert not Mail.objects.exists()


class TestOurOwnFault:
    def test_is_not_tried_again(self, nexus, breaking):
        seen = breaking("08006")
        answer = nexus.call("backend_worker", "send_mail", **MAIL)
        assert (answer.status, answer.code) == (500, "INTERNAL")
        assert len(seen) == 1

    def test_is_told_in_the_envelope_of_every_answer(self, nexus, breaking):
        breaking("08006")
        body = nexus.call("backend_worker", "send_mail", **MAIL).body
        assert (body["ok"], body["tool_name"], body["mode"]) == (False, "send_mail", "chat_safe")
        assert body["message"]
        assert body["next_action"]


class TestProblems:
    def test_are_named_for_the_first_twenty_fields_only(self, nexus):
        unknown = {f"field_{number}": 1 for number in range(900)}
        body = nexus.call("ceo", "send_mail", **unknown).body
        assert body["error_code"] == "INVALID_PARAMS"
        assert len(body["details"]) == 20
