"""`make demo` against a running installation: the whole day, twice, and what makes it fail."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from contracts.models import Contract
from lab.demo import play
from lab.demo.day import Unexpected
from lab.demo.stories import MARK
from tests.oracle.org import AGENTS


@pytest.fixture(scope="module")
def keys(company):
    return {handle: company.key(handle) for handle in AGENTS}


def played(address, keys, **options):
    out = io.StringIO()
    right = play.play_day(url=address, keys=keys, out=out, colour=False, **options)
    return right, out.getvalue()


class TestTheDay:
    def test_ends_well_twice_and_leaves_the_board_something_to_decide(self, address, keys):
        for _ in range(2):
            right, told = played(address, keys)
            assert right, told
            assert "every answer was the expected one" in told
            assert "\x1b[" not in told
            assert f"Waiting for you: {address}/admin/" in told
        left = Contract.objects.filter(title__startswith=MARK)
        left = left.filter(state__in=["pending", "in_progress", "review"])
        assert left.filter(issuer=None, state="review").count() == 1
        assert left.count() == 3, "the evening's of the second day, not of the first"

    def test_fails_when_an_answer_is_another_one(self, address, keys, monkeypatch):
        def hopes_too_much(day):
            day.ask("backend_worker", "send_mail", to="ceo", type="info", subject="x", body="x")

        def goes_on(day):
            day.ask("backend_worker", "current_time")

        monkeypatch.setattr(play.stories, "STORIES", [("Hope", hopes_too_much), ("Then", goes_on)])
        right, told = played(address, keys)
        assert not right
        assert "expected OK" in told
        assert told.index("Then") < told.index("NOT as expected")


class TestTheCommand:
    def test_exits_with_one_when_the_day_went_wrong(self, address, keys, tmp_path, monkeypatch):
        file = tmp_path / "nexus.json"
        file.write_text(json.dumps(keys))

        def wrong(day):
            raise Unexpected("no")

        monkeypatch.setattr(play.stories, "STORIES", [("Wrong", wrong)])
        with pytest.raises(SystemExit) as ended:
            call_command("demo", url=address, keys=file, stdout=io.StringIO())
        assert ended.value.code == 1

    def test_says_what_to_start_when_nobody_answers(self, keys, tmp_path):
        file = tmp_path / "nexus.json"
        file.write_text(json.dumps(keys))
        with pytest.raises(CommandError, match="make up"):
            call_command("demo", url="http://127.0.0.1:9", keys=file)

    def test_says_who_writes_the_keys_when_there_are_none(self, tmp_path):
        with pytest.raises(CommandError, match="make up"):
            call_command("demo", keys=tmp_path / "none.json")

    def test_names_the_agent_whose_key_is_missing(self, address, keys):
        with pytest.raises(play.NotRunning, match="ceo"):
            played(address, {k: v for k, v in keys.items() if k != "ceo"})
