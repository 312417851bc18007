"""The list of the stream's events against the source, and the guard that holds the suite to it."""

import ast
from datetime import UTC, datetime

import pytest
from django.conf import settings

from core.actions import Action
from core.events import Event
from tests.sources import parsed
from tests.stream_events import problem_of
from toolbox.faces.stream_events import STREAM_EVENTS


class TestTheGuardOfEvents:
    """`tests/stream_events.py` looks at each event of the suite; here it is seen to find faults."""

    @pytest.mark.parametrize(
        ("action", "kind", "details", "problem"),
        [
            ("mail.delivered", "mail", {"from": "a", "to": "b", "type": "info"}, ""),
            ("mail.delivered", "mail", {"from": "a", "to": "b"}, "type"),
            ("mail.delivered", "mail", {"from": "a", "to": "b", "type": "info", "x": 1}, "x"),
            ("mail.delivered", "task", {}, "not among"),
            ("agent.hired", "mail", {}, "not among"),
            ("task.warned", "task", {}, ""),
        ],
    )
    def test_finds_what_the_description_does_not_say(self, action, kind, details, problem):
        event = Event(action=Action(action), actor="agent:a", at=datetime.now(UTC), kind=kind,
                      for_agent_id=1, details=details)  # fmt: skip
        found = problem_of(event)
        assert problem in found
        assert bool(found) == bool(problem)


class TestTheListOfEvents:
    """STREAM_EVENTS against the source: what a module puts on a stream, and nothing else."""

    ROOMS = [*settings.ROOMS, "core"]
    BY_STATE = {Action.FRAME_RETURNED, Action.FRAME_FAILED, Action.FRAME_CANCELLED}

    def test_has_every_event_that_a_module_puts_on_a_stream(self):
        listed = {(event.kind, event.action.name) for event in STREAM_EVENTS}
        found = {
            pair
            for file in self.sources()
            for node in ast.walk(parsed(file.read_text()))
            if isinstance(node, ast.Call)
            for pair in put_on_stream(node)
        }
        assert len(found) > 12
        assert found - listed == {("task", "TASK_WARNED")}  # who did it does not see it

    def test_has_no_event_that_nothing_records(self):
        text = "".join(f.read_text() for f in self.sources() if f.name != "stream_events.py")
        for event in STREAM_EVENTS:
            assert f"Action.{event.action.name}" in text or event.action in self.BY_STATE

    def sources(self):
        for room in self.ROOMS:
            for file in (settings.BASE_DIR / room).rglob("*.py"):
                if "migrations" not in file.parts:
                    yield file


def put_on_stream(node):
    """The kinds and names of the actions that a call names together with a stream's agent."""
    given = {word.arg: word.value for word in node.keywords}
    kind = given.get("kind")
    if "for_agent_id" not in given or not isinstance(kind, ast.Constant):
        return
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "Action":
            yield kind.value, each.attr
