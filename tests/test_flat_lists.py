"""Every list that an agent can ask for reads as many rows of a long table as of a short one.

The tables hold what is worst for each filter: the rows that match are the oldest, or there are
none. Plans and row counts decide, no times.
"""

from __future__ import annotations

from itertools import product

import pytest
from django.db import connection, transaction
from django.utils import timezone

from contracts.store import makers_among
from core.decision import Code, Denied
from core.paging import LOOKED_THROUGH
from core.params import Page
from documents.memory.search import RANKED
from documents.models import Memory
from tests.company import Company
from tests.loaded import loaded
from tests.plans import most_of, renew_statistics
from toolbox import door
from toolbox.registry import REGISTRY
from workspace.git.reviews import ReviewDraft, find_contract_of_branch

__all__ = ["loaded"]

ROWS = 12_000
MOST = 1800
"""Rows that one statement may touch: 1,000 unread mails counted, and a page from each range."""

MAILS = """
INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent, to_agent,
    mail_type, subject, body, status, created_at, delivered_at, read_at)
SELECT 'MAIL-' || lpad(n::text, 20, '0') || '-fill', %(organisation)s, s.id, r.id, s.handle,
    r.handle, CASE WHEN n < 40 THEN 'report' ELSE 'info' END, 'Status', '',
    CASE WHEN n %% 20000 BETWEEN 40 AND 8000 THEN 'read' ELSE 'delivered' END, now(), now(),
    CASE WHEN n %% 20000 BETWEEN 40 AND 8000 THEN now() END
FROM generate_series(1, %(rows)s) AS n
JOIN orgchart_agent r ON r.handle = 'qa_worker'
JOIN orgchart_agent s ON s.handle = CASE WHEN n < 80 THEN 'it_manager' ELSE 'backend_worker' END
"""
TASKS = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, completed_at, subject_writer, owner_id,
    claimed_at, owner_role)
SELECT %(organisation)s, n, 'Task', '', '',
    (ARRAY['pending', 'completed', 'in_progress'])[n %% 3 + 1], '{}',
    CASE WHEN n < 40 THEN 'qa_worker' ELSE 'backend_worker' END,
    CASE WHEN n < 40 THEN 'testing' ELSE 'bug_fix' END, 'system:test', now(),
    CASE WHEN n < 40 THEN 0 ELSE w.id END, CASE WHEN n %% 3 = 2 THEN w.id END, now(),
    CASE WHEN n %% 3 = 2 THEN 'backend_worker' ELSE '' END
FROM generate_series(1, %(rows)s) AS n JOIN orgchart_agent w ON w.handle = 'ceo'
"""
CONTRACTS = """
INSERT INTO contracts_contract (id, kind, issuer_name, title, body, priority, mode, workspace_scope,
    assigned_branch, grants, environment, artifact, currency, state, version, created_at,
    accepted_at, closed_by, closed_reason, assignee_id, issuer_id, notice_id, organisation_id)
SELECT 'CON-' || lpad(n::text, 20, '0') || '-fill', 'work', 'it_manager', 'Work', '', 'medium',
    'chat_safe', '{}', '', '[]', '', '', '', CASE WHEN n < 40 THEN 'pending' ELSE 'in_progress' END,
    1, now(), CASE WHEN n >= 40 THEN now() END, '', '', w.id, i.id, 'MAIL-' || n, %(organisation)s
FROM generate_series(1, %(rows)s) AS n
JOIN orgchart_agent w ON w.handle = 'qa_worker' JOIN orgchart_agent i ON i.handle = 'it_manager'
"""
FEEDBACK = """
INSERT INTO tasks_feedback (organisation_id, source, author, category, body, external_id,
    received_at)
SELECT %(organisation)s, CASE WHEN n < 40 THEN 'rare' ELSE 'shop' END, '',
    CASE WHEN n < 40 THEN 'bug' ELSE 'praise' END, 'Fine', '', now()
FROM generate_series(1, %(rows)s) AS n
"""
REPORTS = """
INSERT INTO documents_document (organisation_id, kind, author_id, folder, path, title, body, sha256,
    report_type, department, for_board, contract_ref, created_at, filed_at)
SELECT %(organisation)s, 'report', w.id, 'company/reports/' || w.handle || '/',
    'company/reports/' || w.handle || '/' || n || '.md', 'Report', '', repeat('a', 64),
    CASE WHEN n < 40 THEN 'status' ELSE 'cost' END, 'tech', false, '',
    now() - n * interval '1 second', now()
FROM generate_series(1, %(rows)s) AS n
JOIN orgchart_agent w ON w.handle = CASE WHEN n %% 2 = 0 THEN 'qa_worker' ELSE 'research_worker' END
"""
MEMORIES = """
INSERT INTO documents_memory (organisation_id, scope, agent_id, author_id, person, text, words,
    created_at)
SELECT %(organisation)s, CASE w.handle WHEN 'it_manager' THEN 'organisation' ELSE 'agent' END,
    CASE w.handle WHEN 'it_manager' THEN NULL ELSE w.id END, w.id, '', text,
    to_tsvector('english', text), now()
FROM generate_series(1, %(rows)s) AS n
JOIN orgchart_agent w ON w.handle = 'research_worker'
    OR n < 40 AND w.handle IN ('it_manager', 'qa_worker')
CROSS JOIN concat('Service deployed ', CASE WHEN n < 20 THEN 'rarely' END) AS text
"""
UNREADABLE_MEMORIES = """
INSERT INTO documents_memory (organisation_id, scope, author_id, person, text, words, created_at)
SELECT %(organisation)s, 'organisation', w.id, '', 'Kept', to_tsvector('english', 'Kept'), now()
FROM generate_series(1, %(rows)s) AS n JOIN orgchart_agent w ON w.handle = 'research_worker'
"""
OWN_MEMORIES = """
INSERT INTO documents_memory (organisation_id, scope, agent_id, author_id, person, text, words,
    created_at)
SELECT %(organisation)s, 'agent', w.id, w.id, '', 'Parsed', to_tsvector('english', 'Parsed'), now()
FROM generate_series(1, %(rows)s) AS n JOIN orgchart_agent w ON w.handle = 'qa_worker'
"""
COMMENTS = """
INSERT INTO tasks_comment (task_id, author, writer, body, created_at)
SELECT t.id, 'agent:' || w.handle, w.id, 'Word', now()
FROM generate_series(1, %(rows)s) AS n
JOIN orgchart_agent w ON w.handle = CASE WHEN n < 40 THEN 'qa_worker' ELSE 'research_worker' END
JOIN tasks_task t ON t.number = 1
"""
TABLES = (
    ("mailroom_mail", MAILS),
    ("tasks_task", TASKS),
    ("contracts_contract", CONTRACTS),
    ("tasks_feedback", FEEDBACK),
    ("documents_document", REPORTS),
    ("documents_memory", MEMORIES),
    ("tasks_comment", COMMENTS),
)


def choices(**filters: tuple[str | None, ...]) -> list[dict[str, str]]:
    """Every combination of the filters' values; None leaves a filter out."""
    names = list(filters)
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in product(*filters.values())
    ]


LISTS = {
    ("qa_worker", "read_inbox"): choices(
        status=("all", "unread", "read"),
        type=(None, "report", "verdict"),
        **{"from": (None, "it_manager", "ceo")},
    ),
    ("qa_worker", "task_list"): choices(
        status=(None, "pending", "in_progress", "completed", "deleted"),
        roleFilter=(None, "qa_worker", "backend_worker"),
        owner=(None, "", "qa_worker"),
    ),
    ("it_manager", "task_list"): choices(
        status=(None, "completed"), roleFilter=(None, "qa_worker"), owner=(None, "")
    ),
    ("qa_worker", "task_recommend"): [{}],
    ("qa_worker", "task_get"): [{"taskId": "1"}],
    ("product_manager", "read_reports"): choices(
        kind=(None, "note"), report_type=(None, "status"), department=(None, "tech")
    ),
    ("it_manager", "read_tech_reports"): choices(report_type=(None, "status")),
    ("qa_worker", "memory_search"): choices(query=("deployed", "rarely", "-rarely", "none")),
    ("qa_worker", "read_memory"): choices(scope=("agent", "organisation")),
    ("qa_worker", "read_contract"): [{"contract_id": f"CON-{1:020}-fill"}],
    ("it_manager", "manage_tools"): [{"action": "list"}],
    ("ceo", "list_contracts"): [{"contract_id": f"CON-{1:020}-fill"}],
    ("product_manager", "manage_backlog"): [{"action": "list"}],
    ("qa_worker", "list_contracts"): choices(
        state=(None, "pending", "cancelled"), role=(None, "issued", "assigned")
    ),
    ("product_manager", "read_user_feedback"): choices(
        source=(None, "rare", "none"), category=(None, "bug", "none")
    ),
}
CASES = [(*who, params) for who, ways in LISTS.items() for params in ways]


@pytest.fixture(scope="module")
def full(loaded, django_db_blocker):
    """The company with long tables, as ANALYZE sees them."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, rows in TABLES:
            cursor.execute(rows, {"organisation": loaded.organisation.id, "rows": ROWS})
            renew_statistics(table)
        cursor.execute("SET LOCAL session_replication_role = origin")
    return loaded


@pytest.fixture
def nexus(full):
    """The full company; what a test changes is taken back."""
    with transaction.atomic():
        yield Company(full.organisation)
        transaction.set_rollback(True)


def test_every_tool_that_lists_is_here():
    listing = {tool.name for tool in REGISTRY.all() if "cursor" in tool.params.model_fields}
    listing |= {tool.name for tool in REGISTRY.all() if issubclass(tool.params, Page)}
    without_table = {"list_agents"}
    of_an_office = {
        "case_list"
    }  # no role of this company has one; its two orders have an index each
    assert listing - without_table - of_an_office <= {tool for _, tool in LISTS}


class TestListOfALongTable:
    """It reads a page, whichever filters are given."""

    @pytest.mark.parametrize(("handle", "tool", "params"), CASES, ids=str)
    def test_touches_few_rows(self, nexus, handle, tool, params):
        assert most_touched(nexus.caller(handle), tool, params)[0] < MOST

    def test_touches_few_where_nearly_all_are_of_agents_it_does_not_read(self, nexus):
        """The page ends where it has looked far enough, and its cursor leads on."""
        with connection.cursor() as cursor:
            values = {"organisation": nexus.organisation.id, "rows": ROWS}
            cursor.execute(UNREADABLE_MEMORIES, values)
        params: dict = {"scope": "organisation", "limit": 200}
        pages, entries = 0, 0
        while "cursor" not in params or params["cursor"]:
            touched, page = most_touched(nexus.caller("qa_worker"), "read_memory", params)
            assert touched < MOST
            params["cursor"] = page["next_cursor"]
            pages, entries = pages + 1, entries + page["entries"]
        assert (pages, entries) == (ROWS // LOOKED_THROUGH + 1, 39)

    @pytest.mark.parametrize("query", ["parsed", "parsed or absent", "-absent"])
    def test_ranks_a_part_where_everything_matches(self, nexus, query):
        """Each memory's newest entries are among it."""
        with connection.cursor() as cursor:
            values = {"organisation": nexus.organisation.id, "rows": ROWS}
            cursor.execute(OWN_MEMORIES, values)
        renew_statistics("documents_memory")
        newest = str(Memory.objects.latest("id").id)
        touched, page = most_touched(nexus.caller("qa_worker"), "memory_search", {"query": query})
        assert touched < RANKED + LOOKED_THROUGH + MOST / 10
        assert newest in [found["memory_id"] for found in page["memories"]]


class TestContractsOfABranch:
    """They are found among those of all branches: by a review, a verdict and a new contract."""

    def test_are_looked_up_by_its_name(self, nexus):
        reviewer, draft = (
            nexus.caller("it_manager"),
            ReviewDraft(branch="feature/a", comment="Fine"),
        )

        def look_up():
            with pytest.raises(Denied) as refused:
                find_contract_of_branch(reviewer, draft)
            assert refused.value.deny.code is Code.NOT_FOUND
            agents = nexus.policy.by_id
            return makers_among(agents, draft.branch, nexus.organisation.id)

        touched, makers = most_of(look_up)
        assert touched <= 1
        assert makers == frozenset()


@pytest.mark.parametrize(
    "rare", choices(category=(None, "bug"), source=(None, "none"))[1:], ids=str
)
def test_feedback_is_read_by_what_is_rare_after_others_read_it_by_what_is_not(nexus, rare):
    """So few rows are of other values that the statistics know of none."""
    with connection.cursor() as cursor:
        for column in ("organisation_id", "category", "source"):
            cursor.execute(f"ALTER TABLE tasks_feedback ALTER {column} SET (n_distinct = 1)")
        cursor.execute("ANALYZE tasks_feedback")
    reader = nexus.caller("product_manager")
    assert most_touched(reader, "read_user_feedback", rare, after_others=True)[0] < MOST


def most_touched(caller, tool, params, *, after_others=False):
    """The most rows that a statement of the call touches, and what the tool returned."""
    touched, answer = most_of(
        lambda: door.call(caller, tool, params, now=timezone.now()), after_others=after_others
    )
    assert answer.status == 200, answer.body
    return touched, answer.body["result"]
