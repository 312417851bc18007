"""The story of a case, as its page tells and verifies it."""

import pytest
from django.contrib.auth import get_user_model

from governance.cases import timeline
from governance.cases.verification import verify_case
from tests.governance.cases.world import CONTENT, Play
from tests.people import join

ENTERED = "django.contrib.auth.backends.ModelBackend"
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

    @pytest.mark.parametrize(("asked", "shown"), [("", 3), ("?round=1", 1), ("?round=x", 3)])
    def test_is_a_page_of_few_rounds_however_many_there_were(
        self, company, monkeypatch, client, asked, shown
    ):
        """Spec: constitution 36. A hundred rounds of 1 MB each were a page of 100 MB."""
        monkeypatch.setattr(timeline, "SHOWN_ROUNDS", 1)
        play = Play(company).to("IMPLEMENTATION")
        (file,) = CONTENT["IMPLEMENTATION"]["artifacts"]
        for number in (1, 2, 3):
            made = {"artifacts": [{**file, "path": f"round_{number}.py"}]}
            assert play.submit("IMPLEMENTATION", content=made).status == 200
            if number < 3:
                assert play.submit("REVIEW", "REJECTED").status == 200
                assert play.decide("CONTINUE").status == 200
        client.force_login(join(get_user_model().objects.create_superuser("ada")), ENTERED)
        html = client.get(f"/admin/governance/case/{play.id}/change/{asked}").content.decode()
        for number in (1, 2, 3):
            assert (f"round_{number}.py" in html) is (number == shown)
            assert (f'href="?round={number}"' in html) is (number != shown)
        assert "Print ok" in html
        assert not verify_case(play.row).findings
