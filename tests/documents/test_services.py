"""Documents on a real PostgreSQL: rows, events, files, scopes, pages."""

import hashlib
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, connections, transaction

from core import paging
from core.decision import Code, Denied
from documents import files, rules, services
from documents.models import Document, DocumentKind
from documents.reports import ReportFilter, read_report, read_reports
from documents.rules import department_to_file_in
from documents.rules import parse_date_range as span
from documents.tree import SafeTree
from ledger.models import Event
from orgchart.policy.parties import BOARD_PARTY
from tests.company import load_company
from tests.concurrency import at_once
from tests.decisions import denied
from tests.documents.world import NOW, caller_of, found
from tests.plans import renew_statistics


def note(caller, title="A decision", content="We hire.", *, for_board=False, now=NOW):
    return services.write_note(
        caller=caller, title=title, content=content, for_board=for_board, now=now
    )


def filed(caller, title="Week 7", *, report_type="status", reader="", now=NOW, body="All well."):
    issuer = caller.policy.agents.get(reader, BOARD_PARTY)
    with transaction.atomic():
        return services.file_report(
            caller=caller,
            title=title,
            body=body,
            report_type=report_type,
            department=department_to_file_in(caller.agent, issuer, caller.policy),
            contract_ref="CON-1",
            now=now,
        )


def listed(caller, **wanted):
    return read_reports(caller=caller, wanted=ReportFilter(**wanted))


def titles(page):
    return [r["title"] for r in page["reports"]]


class TestWriteNote:
    def test_keeps_row_event_and_file(self, nexus, company, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            answer = note(caller_of(nexus, "ceo"), "Q1 决策")
        path = "agents/ceo/notes/20260219093000123456-q1-决策.md"
        assert answer["path"] == path
        assert (company / "nexus" / path).read_text() == "We hire."
        row = Document.objects.get()
        assert (row.sha256, row.title) == (hashlib.sha256(b"We hire.").hexdigest(), "Q1 决策")
        assert row.filed_at is not None
        event = Event.objects.get(action="note.written")
        assert event.subject == f"document:{row.id}"
        assert event.details == {"path": path, "sha256": row.sha256}

    def test_writes_no_file_when_the_call_is_rolled_back(self, nexus, company):
        with transaction.atomic():
            note(caller_of(nexus, "ceo"))
            transaction.set_rollback(True)
        assert not Document.objects.exists()
        assert not company.exists()

    def test_gives_each_of_one_title_at_one_time_a_name(self, nexus):
        caller = caller_of(nexus, "ceo")
        paths = [note(caller)["path"] for _ in range(3)]
        assert len(set(paths)) == 3
        assert sorted(paths) == paths

    def test_marks_the_top_agents_for_the_board(self, nexus):
        answer = note(caller_of(nexus, "ceo"), for_board=True)
        assert answer["for_board"] is True
        assert Document.objects.get().for_board
        assert Event.objects.get(action="note.written").details["for_board"] is True

    def test_for_the_board_are_few_enough_to_be_read(self, nexus):
        """Spec: escalation 19: each is an e-mail to a person."""
        ceo = caller_of(nexus, "ceo")
        for minute in range(rules.MOST_FOR_BOARD):
            note(ceo, for_board=True, now=NOW + timedelta(minutes=minute))
        with pytest.raises(Denied) as refused:
            note(ceo, for_board=True, now=NOW + timedelta(minutes=59))
        assert refused.value.deny.code is Code.RATE_LIMITED
        assert Document.objects.count() == rules.MOST_FOR_BOARD
        note(ceo, now=NOW + timedelta(minutes=59))
        note(ceo, for_board=True, now=NOW + timedelta(minutes=60))

    def test_for_the_board_go_on_where_the_clock_was_set_back(self, nexus):
        ceo = caller_of(nexus, "ceo")
        for minute in range(rules.MOST_FOR_BOARD):
            note(ceo, for_board=True, now=NOW + timedelta(days=10, minutes=minute))
        note(ceo, for_board=True, now=NOW)

    @pytest.mark.django_db(transaction=True)
    def test_for_the_board_are_as_few_where_they_are_written_at_once(self):
        ceo = caller_of(load_company("nexus").organisation, "ceo")
        for minute in range(rules.MOST_FOR_BOARD - 2):
            note(ceo, for_board=True, now=NOW + timedelta(minutes=minute))
        later = NOW + timedelta(minutes=59)
        ends = at_once([lambda: note(ceo, for_board=True, now=later)] * 6)
        assert ends.count(Code.RATE_LIMITED) == 4
        assert Document.objects.count() == rules.MOST_FOR_BOARD

    @pytest.mark.parametrize("handle", ["it_manager", "hr_manager", "product_manager"])
    def test_refuses_the_mark_of_anybody_else(self, nexus, handle):
        with pytest.raises(Denied) as refusal:
            note(caller_of(nexus, handle), for_board=True)
        assert refusal.value.deny.code is Code.LEVEL_DENIED
        assert not Document.objects.exists()

    def test_refuses_who_may_not_write_there(self, nexus):
        with pytest.raises(Denied) as refusal:
            note(caller_of(nexus, "qa_worker"))
        assert refusal.value.deny.code is Code.SCOPE_DENIED

    def test_keeps_its_row_when_the_disk_refuses(
        self, nexus, company, django_capture_on_commit_callbacks
    ):
        company.mkdir()
        (company / "nexus").symlink_to("/tmp")
        with django_capture_on_commit_callbacks(execute=True):
            answer = note(caller_of(nexus, "ceo"))
        assert Document.objects.get().filed_at is None
        assert not (Path("/tmp") / answer["path"]).exists()


class TestTheRow:
    def test_never_changes(self, nexus):
        note(caller_of(nexus, "ceo"))
        for change in ({"body": "other"}, {"path": "x"}, {"for_board": True}, {"author_id": 1}):
            with pytest.raises(IntegrityError, match="does not change"), transaction.atomic():
                Document.objects.update(**change)
        Document.objects.update(filed_at=NOW)

    @pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE"])
    @pytest.mark.parametrize(
        "table",
        ["documents_document", "documents_memory", "documents_artifact", "documents_keptfile"],
    )
    def test_is_not_deleted(self, nexus, table, statement):
        with (
            pytest.raises(IntegrityError, match="not deleted"),
            transaction.atomic(),
            connection.cursor() as db,
        ):
            db.execute(statement.format(table))

    def test_has_a_path_of_its_own_in_its_organisation_only(self, nexus):
        other = found("nexus", slug="other")
        one = note(caller_of(nexus, "ceo"))
        two = note(caller_of(other, "ceo"))
        assert one["path"] == two["path"]


class TestWriteReport:
    def test_files_in_the_authors_own_folder(self, nexus):
        answer = services.write_report(
            caller=caller_of(nexus, "research_worker"),
            title="Market",
            content="Big.",
            report_type="completion",
            now=NOW,
        )
        assert answer["path"] == "reports/research/20260219093000123456-market.md"
        row = Document.objects.get()
        assert (row.department, row.report_type) == ("research", "completion")

    def test_refuses_a_folder_that_is_not_the_authors(self, nexus):
        with pytest.raises(Denied) as refusal:
            services.write_report(
                caller=caller_of(nexus, "backend_worker"),
                title="t",
                content="c",
                report_type="status",
                now=NOW,
            )
        assert refusal.value.deny.code is Code.SCOPE_DENIED


class TestWritePrd:
    def test_files_under_docs_prd(self, nexus):
        answer = services.write_prd(
            caller=caller_of(nexus, "product_manager"), title="Login", content="c", now=NOW
        )
        assert answer["path"] == "docs/prd/20260219093000123456-login.md"

    def test_refuses_anybody_else(self, nexus):
        for handle in ("ceo", "it_manager", "frontend_worker", "research_worker"):
            with pytest.raises(Denied) as refusal:
                services.write_prd(
                    caller=caller_of(nexus, handle), title="Login", content="c", now=NOW
                )
            assert refusal.value.deny.code is Code.SCOPE_DENIED


class TestFileReport:
    def test_puts_a_workers_report_where_its_manager_reads(self, nexus):
        row = filed(caller_of(nexus, "backend_worker"))
        assert row.folder == "reports/tech/"
        assert row.contract_ref == "CON-1"
        assert titles(listed(caller_of(nexus, "it_manager"))) == ["Week 7"]

    @pytest.mark.parametrize(
        ("author", "reader", "folder"),
        [
            ("qa_worker", "it_manager", "reports/tech/"),
            ("research_worker", "product_manager", "reports/product/"),
            ("frontend_worker", "product_manager", "reports/product/"),
            ("qa_worker", "", "reports/qa/"),
            ("it_manager", "ceo", "reports/tech/"),
            ("hr_manager", "ceo", "reports/hr/"),
            ("product_manager", "ceo", "reports/product/"),
            ("backend_worker", "ceo", "reports/tech/"),
        ],
    )
    def test_puts_it_where_who_gave_the_work_reads(self, nexus, author, reader, folder):
        assert filed(caller_of(nexus, author), reader=reader).folder == folder
        if reader:
            assert titles(listed(caller_of(nexus, reader))) == ["Week 7"]

    def test_refuses_a_type_that_there_is_not(self, nexus):
        with pytest.raises(ValueError, match="gossip"):
            filed(caller_of(nexus, "backend_worker"), report_type="gossip")


READERS = {
    "ceo": {"Backend", "QA", "Research"},
    "it_manager": {"Backend", "QA"},
    "hr_manager": set(),
    "product_manager": {"Research"},
}


class TestReadReports:
    @pytest.fixture
    def reports(self, nexus):
        for number, (handle, title) in enumerate(
            [("backend_worker", "Backend"), ("qa_worker", "QA"), ("research_worker", "Research")]
        ):
            filed(caller_of(nexus, handle), title, now=NOW + timedelta(days=number))
        return nexus

    @pytest.mark.parametrize(("handle", "seen"), READERS.items())
    def test_shows_what_the_readers_scope_holds(self, reports, handle, seen):
        assert set(titles(listed(caller_of(reports, handle)))) == seen

    def test_shows_the_newest_first_with_their_heads(self, reports):
        page = listed(caller_of(reports, "ceo"))
        assert titles(page) == ["Research", "QA", "Backend"]
        row = page["reports"][-1]
        assert row["author"] == "backend_worker"
        assert row["department"] == "tech"
        assert row["excerpt"] == "All well."
        assert row["contract_ref"] == "CON-1"
        assert row["created_at"] == NOW

    def test_filters_by_department_type_and_days(self, reports):
        ceo = caller_of(reports, "ceo")
        filed(caller_of(reports, "backend_worker"), "Cost", report_type="cost", now=NOW)
        assert titles(listed(ceo, department="qa")) == ["QA"]
        assert titles(listed(ceo, department="nowhere")) == []
        assert titles(listed(ceo, report_type="cost")) == ["Cost"]
        assert titles(listed(ceo, days=span("2026-02-20"))) == ["QA"]
        assert titles(listed(ceo, days=span("2026-02-20..2026-02-21"))) == ["Research", "QA"]
        assert titles(listed(ceo, department="tech", report_type="status")) == ["Backend"]

    def test_refuses_a_department_outside_the_scope(self, reports):
        for handle, department in [
            ("hr_manager", "tech"),
            ("hr_manager", "qa"),
            ("it_manager", "hr"),
            ("product_manager", "tech"),
            ("it_manager", "tech-evil"),
        ]:
            with pytest.raises(Denied) as refusal:
                listed(caller_of(reports, handle), department=department)
            assert refusal.value.deny.code is Code.SCOPE_DENIED

    def test_pages_through_all_of_it_once(self, reports):
        ceo = caller_of(reports, "ceo")
        backend = caller_of(reports, "backend_worker")
        for number in range(9):
            filed(backend, f"Same time {number}", now=NOW)
        seen, cursor = [], None
        while True:
            page = listed(ceo, limit=5, cursor=cursor)
            seen += titles(page)
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 12

    def test_ends_with_a_null_cursor_on_a_full_last_page(self, reports):
        assert listed(caller_of(reports, "ceo"), limit=3)["next_cursor"] is None

    @pytest.mark.parametrize(
        "cursor",
        [
            "x",
            "",
            "!!!!",
            paging.encode("2026-01-01T00:00:00 1"),
            paging.encode("yesterday 1"),
            paging.encode("2026-01-01T00:00:00+00:00 99999999999999999999"),
            paging.encode("2026-01-01T00:00:00+00:00 -1"),
            paging.encode("7"),
        ],
    )
    def test_refuses_a_cursor_that_no_list_gave(self, reports, cursor):
        with pytest.raises(Denied) as refusal:
            listed(caller_of(reports, "ceo"), cursor=cursor)
        assert refusal.value.deny.code is Code.INVALID_PARAMS

    def test_never_crosses_organisations(self, reports):
        other = found("nexus", slug="other")
        assert titles(listed(caller_of(other, "ceo"))) == []
        row = Document.objects.first()
        with pytest.raises(Denied) as refusal:
            read_report(caller=caller_of(other, "ceo"), document_id=str(row.id))
        assert refusal.value.deny.code is Code.NOT_FOUND

    def test_leaves_notes_and_prds_alone(self, reports):
        note(caller_of(reports, "ceo"), "Private")
        assert "Private" not in titles(listed(caller_of(reports, "ceo")))

    def test_asks_two_queries_whatever_there_is(self, reports, django_assert_num_queries):
        ceo = caller_of(reports, "ceo")
        with django_assert_num_queries(2):
            listed(ceo)

    def test_never_scans_the_table(self, reports):
        backend, it = caller_of(reports, "backend_worker"), caller_of(reports, "it_manager")
        research = caller_of(reports, "research_worker")
        for number in range(900):
            filed(research, f"r{number}", now=NOW + timedelta(hours=number))
        filed(backend, "Old", now=NOW - timedelta(days=9))
        assert titles(listed(it)) == ["QA", "Backend", "Old"]
        with connection.cursor() as db:
            renew_statistics("documents_document")
            db.execute("SET LOCAL enable_seqscan = on")
            seen = []

            def watch(execute, sql, params, many, context):
                if sql.lstrip().startswith(("SELECT page", "WITH RECURSIVE")):
                    with connection.cursor() as other:
                        other.execute("EXPLAIN " + sql, params)
                        seen.append("\n".join(r[0] for r in other.fetchall()))
                return execute(sql, params, many, context)

            with connection.execute_wrapper(watch):
                listed(it)
        assert len(seen) == 2
        assert all("Seq Scan on documents_document" not in plan for plan in seen), seen


class TestReadReport:
    def test_gives_it_whole(self, nexus):
        row = filed(caller_of(nexus, "backend_worker"), body="x" * 5000)
        found_row = read_report(caller=caller_of(nexus, "it_manager"), document_id=str(row.id))
        assert found_row["body"] == "x" * 5000
        assert found_row["sha256"] == row.sha256

    @pytest.mark.parametrize("handle", ["hr_manager", "product_manager"])
    def test_answers_the_same_for_out_of_scope_and_for_nothing(self, nexus, handle):
        row = filed(caller_of(nexus, "backend_worker"))
        answers = set()
        for document_id in (str(row.id), "999999999999999999"):
            with pytest.raises(Denied) as refusal:
                read_report(caller=caller_of(nexus, handle), document_id=document_id)
            answers.add(refusal.value.deny.message.replace(document_id, "N"))
            assert refusal.value.deny.code is Code.NOT_FOUND
        assert len(answers) == 1

    @pytest.mark.parametrize("handle", ["ceo", "it_manager", "hr_manager", "product_manager"])
    def test_gives_a_note_to_its_author_only(self, nexus, handle):
        number = note(caller_of(nexus, handle))["document_id"]
        for reader in ("ceo", "it_manager", "hr_manager", "product_manager"):
            if reader == handle:
                own = read_report(caller=caller_of(nexus, reader), document_id=number)
                assert (own["kind"], own["body"]) == ("note", "We hire.")
                assert (own["report_type"], own["department"]) == (None, None)
            else:
                with pytest.raises(Denied) as refusal:
                    read_report(caller=caller_of(nexus, reader), document_id=number)
                assert refusal.value.deny.code is Code.NOT_FOUND

    def test_lists_an_agents_own_notes(self, nexus):
        note(caller_of(nexus, "hr_manager"), "Mine")
        note(caller_of(nexus, "ceo"), "Others")
        assert titles(listed(caller_of(nexus, "hr_manager"), kind=DocumentKind.NOTE)) == ["Mine"]

    @pytest.mark.parametrize(
        ("author", "reader", "department"),
        [
            ("research_worker", "product_manager", "research"),
            ("qa_worker", "it_manager", "qa"),
            ("research_worker", "ceo", "research"),
        ],
    )
    def test_opens_for_the_manager_of_its_author(self, nexus, author, reader, department):
        row = filed(caller_of(nexus, author))
        caller = caller_of(nexus, reader)
        assert titles(listed(caller)) == ["Week 7"]
        assert titles(listed(caller, department=department)) == ["Week 7"]
        assert read_report(caller=caller, document_id=str(row.id))["body"] == row.body

    def test_is_found_by_the_department_of_the_work(self, nexus):
        """Spec: files 13. The author is of another department than its contract."""
        row = filed(caller_of(nexus, "frontend_worker"), reader="product_manager")
        for reader in ("it_manager", "product_manager"):
            caller = caller_of(nexus, reader)
            assert row.department == "product"
            assert titles(listed(caller)) == ["Week 7"]
            assert titles(listed(caller, department="product")) == ["Week 7"]

    def test_is_no_way_from_one_manager_to_another(self, nexus):
        row = filed(caller_of(nexus, "it_manager"))
        for reader in ("hr_manager", "product_manager", "backend_worker"):
            with denied("NOT_FOUND"):
                read_report(caller=caller_of(nexus, reader), document_id=str(row.id))

    def test_of_the_tech_tool_is_for_tech_only(self, nexus):
        row = filed(caller_of(nexus, "qa_worker"))
        with denied("NOT_FOUND"):
            read_report(
                caller=caller_of(nexus, "ceo"), document_id=str(row.id), within="reports/tech/"
            )


class TestFileMissing:
    LATER = NOW + timedelta(minutes=5)

    def test_writes_what_a_crash_left_out(self, nexus, company):
        answer = note(caller_of(nexus, "ceo"))
        assert files.write_missing_files(now=NOW + timedelta(seconds=1)) == 0
        assert files.write_missing_files(now=self.LATER) == 1
        assert SafeTree(company, "nexus").read(answer["path"]) == b"We hire."
        assert files.write_missing_files(now=self.LATER) == 0

    def test_tries_again_when_the_disk_refuses(self, nexus, company):
        note(caller_of(nexus, "ceo"))
        company.mkdir()
        (company / "nexus").write_text("a file where a folder belongs")
        assert files.write_missing_files(now=self.LATER) == 0
        (company / "nexus").unlink()
        assert files.write_missing_files(now=self.LATER) == 1

    @pytest.mark.django_db(transaction=True)
    def test_leaves_to_others_what_they_hold(self, company):
        nexus = found()
        note(caller_of(nexus, "ceo"))
        Document.objects.update(filed_at=None)
        counts = []

        def sweep():
            try:
                counts.append(files.write_missing_files(now=self.LATER))
            finally:
                connections.close_all()

        threads = [threading.Thread(target=sweep) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(counts) == 1
