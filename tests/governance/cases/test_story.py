"""The story of a case, as its page tells and verifies it."""

import pytest

from governance.cases import timeline
from governance.cases.verification import verify_case
from tests.governance.cases.world import Play

pytestmark = pytest.mark.django_db


class TestTheStory:
    def test_keeps_what_moved_a_case_however_often_its_inputs_are_read(self, company, monkeypatch):
        """Spec: constitution 36. A thousand reads made the verification report tampering."""
        monkeypatch.setattr(timeline, "SHOWN", 3)
        play = Play(company).to("IMPLEMENTATION")
        for _ in range(4):
            assert play.inputs("implementer").status == 200
        titles = [entry.title for entry in timeline.timeline_of(play.row)]
        assert titles == ["Request", "ANALYSIS", "TASKS", *["Inputs read"] * 3]
        report = verify_case(play.row)
        assert (report.contents, report.events) == (3, 6)
        assert not report.findings
