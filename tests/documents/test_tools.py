"""The documents' tools through the door: parameters, gates, refusals with their one event."""

import pytest

from documents.models import Document
from ledger.models import Event
from tests.documents.world import NOW, caller_of
from toolbox import door
from toolbox.explaining import explain

NOTE = {"title": "A decision", "content": "We hire."}


def answer(nexus, handle, tool, **params):
    return door.call(caller_of(nexus, handle), tool, params, now=NOW)


WRITERS = {
    "write_note": {"ceo", "it_manager", "hr_manager", "product_manager"},
    "write_report": {"research_worker"},
    "write_prd": {"product_manager"},
}


class TestWriting:
    @pytest.mark.parametrize("tool", WRITERS)
    def test_is_for_the_roles_of_the_matrix(self, nexus, tool):
        for handle in caller_of(nexus, "ceo").policy.agents:
            found = answer(nexus, handle, tool, **NOTE)
            allowed = handle in WRITERS[tool]
            assert found.status == (200 if allowed else 403), (handle, found.body)
            if not allowed:
                assert found.body["error_code"] == "TOOL_NOT_BOUND"

    @pytest.mark.parametrize(
        "change",
        [
            {"title": ""}, {"title": " \n"}, {"title": "x" * 201}, {"content": ""},
            {"content": "x" * 200_001}, {"title": ["x"]}, {"content": 7}, {"path": "docs/a.md"},
            {"for_board": "yes"}, {"for_board": 1}, {"folder": "reports/"}, {"author": "ceo"},
        ],
    )  # fmt: skip
    def test_refuses_what_its_schema_does_not_hold(self, nexus, change):
        found = answer(nexus, "it_manager", "write_note", **{**NOTE, **change})
        assert (found.status, found.body["error_code"]) == (400, "INVALID_PARAMS")
        assert set(found.body["details"]) <= set(change)
        assert not Document.objects.exists()
        assert Event.objects.filter(action="tool.denied").count() == 1

    def test_ignores_a_forged_author(self, nexus):
        answer(nexus, "it_manager", "write_note", **NOTE, **{"from": "ceo"})
        assert Document.objects.get().author.handle == "it_manager"

    def test_never_lets_a_title_choose_the_place(self, nexus):
        for title in ("../../../../etc/cron.d/x", "/etc/passwd", "..", "a\nb", "CON", ".env"):
            found = answer(nexus, "ceo", "write_note", title=title, content="x")
            assert found.status == 200, (title, found.body)
            assert found.body["result"]["path"].startswith("agents/ceo/notes/2026")
            assert found.body["result"]["path"].count("/") == 3

    def test_is_explained_without_being_done(self, nexus):
        found = explain(caller_of(nexus, "ceo"), "write_note", NOTE, now=NOW)
        assert found["allowed"]
        assert "agents/ceo/" in found["rule"]
        assert not Document.objects.exists()


class TestReading:
    @pytest.fixture(autouse=True)
    def reports(self, nexus):
        answer(nexus, "research_worker", "write_report", title="Market", content="Big.")

    def test_lists_and_reads_one_whole(self, nexus):
        page = answer(nexus, "ceo", "read_reports").body["result"]
        (row,) = page["reports"]
        one = answer(nexus, "ceo", "read_reports", document_id=row["document_id"]).body["result"]
        assert one["body"] == "Big."
        assert page["next_cursor"] is None

    @pytest.mark.parametrize(
        "params",
        [
            {"department": "../hr"}, {"department": "tech/"}, {"department": "%"},
            {"department": "Tech"}, {"report_type": "gossip"}, {"limit": 0}, {"limit": 201},
            {"limit": True}, {"limit": "5"}, {"document_id": "1 OR 1=1"}, {"document_id": 1},
            {"document_id": "9" * 19}, {"date_range": "tomorrow"}, {"cursor": "x"},
            {"date_range": "2026-02-30"}, {"date_range": "2026-02-02..2026-02-01"},
            {"date_range": 7}, {"date_range": "2026-02-30", "document_id": "1"},
            {"path__startswith": "reports/"}, {"organisation": "other"},
        ],
    )  # fmt: skip
    def test_refuses_what_its_schema_does_not_hold(self, nexus, params):
        found = answer(nexus, "ceo", "read_reports", **params)
        assert (found.status, found.body["error_code"]) == (400, "INVALID_PARAMS")

    def test_of_tech_is_the_it_managers(self, nexus):
        assert answer(nexus, "it_manager", "read_tech_reports").body["result"]["reports"] == []
        for handle in ("ceo", "hr_manager", "product_manager"):
            found = answer(nexus, handle, "read_tech_reports")
            assert found.body["error_code"] == "TOOL_NOT_BOUND"

    def test_of_tech_takes_no_department(self, nexus):
        found = answer(nexus, "it_manager", "read_tech_reports", department="hr")
        assert found.body["error_code"] == "INVALID_PARAMS"


class TestCurrentTime:
    def test_is_everybodys(self, nexus):
        for handle in caller_of(nexus, "ceo").policy.agents:
            found = answer(nexus, handle, "current_time")
            assert found.body["result"] == {"now": NOW, "timezone": "UTC"}
