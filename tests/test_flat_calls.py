"""What a call looks up for an agent costs the same where nearly all rows are of others.

PostgreSQL may answer by a plan for no agent in particular (`tests/plans.py`). Row counts decide.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from contracts.queries import list_contracts
from core.database import planned_for_values
from core.decision import Code, Denied
from documents.attachments import keep_file
from documents.memory.entries import replaced_entries
from documents.memory.owners import owner_of
from documents.models import MemoryScope
from governance.cases.inputs import list_cases
from governance.cases.models import Case
from ledger.history import last_write
from mailroom.escalations.threads import insert_in_thread
from mailroom.models import Escalation
from orgchart.models import Agent, Organisation, Role
from tasks.intake.importing import _in_circles
from tests.company import Company
from tests.loaded import loaded
from tests.plans import most_of, renew_statistics
from tests.settled import fill
from toolbox.frames.services import take_next, unread_results
from toolbox.frames.stack import frame_taken_by
from workspace.builds.health import latest
from workspace.git.garbage import _forget
from workspace.git.models import Repository
from workspace.git.repositories import replaceable

__all__ = ["loaded"]

MOST = 500
"""Rows that one statement may touch; the tables have 12,000 each, of other agents."""


ENDED_OF_ONE = """
UPDATE mailroom_escalation SET sender_id = (
    SELECT id FROM orgchart_agent WHERE handle = 'extra_1' AND organisation_id = %s
) WHERE state = 'answered'
"""


DEPLOYED_LONG_AGO = """
UPDATE workspace_deployment SET service = CASE WHEN id < (
    SELECT id FROM workspace_deployment ORDER BY id OFFSET 1000 LIMIT 1
) THEN 'old' ELSE 'new' END
WHERE state <> 'started' AND organisation_id = %s
"""
DRAFTS = """
INSERT INTO workspace_draft (contract_id, agent_id, branch, commit, checked_out, merging,
    merged_tree, conflicts, updated_at)
SELECT id, assignee_id, 'work/' || id, repeat('a', 40), false, '', '', '{}', now()
FROM contracts_contract WHERE organisation_id = %s AND state = 'cancelled'
"""


@pytest.fixture(scope="module")
def full(loaded, django_db_blocker):
    """The company with long tables, nearly all escalations of one agent."""
    with django_db_blocker.unblock():
        fill(loaded.organisation)
        move("mailroom_escalation", ENDED_OF_ONE, loaded.organisation.id)
        move("workspace_deployment", DEPLOYED_LONG_AGO, loaded.organisation.id)
        move("workspace_draft", DRAFTS, loaded.organisation.id)
    return loaded


def move(table, statement, value):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, value if isinstance(value, dict) else [value])
        cursor.execute("SET LOCAL session_replication_role = origin")
    renew_statistics(table)


@pytest.fixture
def nexus(full):
    """The full company; what a test changes is taken back."""
    atomic = transaction.atomic()
    atomic._from_testcase = True
    with atomic:
        yield Company(full.organisation)
        transaction.set_rollback(True)


def escalate(caller):
    new = Escalation(
        mail_id="MAIL-of-a-test",
        organisation_id=caller.organisation_id,
        sender_id=caller.agent.id,
        recipient_id=caller.policy.agents["it_manager"].id,
        due_at=timezone.now(),
    )
    with transaction.atomic():
        insert_in_thread(new, follows=None, root_id=None)
        transaction.set_rollback(True)  # what is read again later shall find no thread either
    return new.first_id


def cases_of_another_organisation(caller):
    other = SimpleNamespace(organisation_id=0, agent=caller.agent, role=caller.role)
    return list_cases(state=None, cursor=None, limit=50, caller=other)["cases"]


def another_organisation():
    """One with a single agent, and nothing else."""
    other = Organisation.objects.create(slug="other", name="Other")
    role = Role.objects.create(organisation=other, name="ceo", level=1, kind="executive")
    Agent.objects.create(organisation=other, handle="ceo", role=role)
    return other


def drafts_of_another_organisation(_caller):
    """Whether its repository may be replaced, and which of its drafts are forgotten."""
    other = another_organisation()
    Repository.objects.create(id=2, organisation=other, main="main", created_at=timezone.now())
    assert replaceable(other, "elsewhere")
    return _forget(other, timezone.now())


def attach(caller):
    """A file that is neither a document nor an artifact, and not there."""
    with transaction.atomic(), pytest.raises(Denied) as refusal:
        keep_file(caller, "reports/none.md", timezone.now())
    assert refusal.value.deny.code is Code.NOT_FOUND


LOOKS = {
    "a file to attach": attach,
    "contracts": lambda caller: list_contracts(caller=caller)["contracts"],
    "drafts": drafts_of_another_organisation,
    "cases": cases_of_another_organisation,
    "its thread": escalate,
    "the frame it is in": lambda caller: frame_taken_by(caller.agent.id),
    "a frame that waits": lambda caller: take_next(caller=caller, now=timezone.now()),
    "corrected entries": lambda caller: replaced_entries(
        owner=owner_of(MemoryScope.AGENT, caller.agent, caller.policy)
    ),
    "unread results": lambda caller: unread_results(caller=caller, inside=None),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_looks_at_few_rows_for_an_agent_that_has_none(nexus, look):
    touched, found = most_of(lambda: look(nexus.caller("qa_worker")), after_others=True)
    assert not found
    assert touched < MOST


def test_looks_at_few_deployments_for_the_newest_of_a_service(nexus):
    def look():
        with pytest.raises(Denied) as refusal:
            latest(nexus.caller("qa_worker"), "none", None)
        assert refusal.value.deny.code is Code.NOT_FOUND
        return latest(nexus.caller("qa_worker"), "old", None)

    touched, found = most_of(look)
    assert found.service == "old"
    assert touched < MOST


SHARED = f"reports/{'a' * 220}.md"
WRITES = """
INSERT INTO ledger_event (id, at, organisation_id, actor, action, decision, subject, details,
    digest)
SELECT gen_random_uuid(), now(), organisation, 'agent:it_manager', 'file.written', 'allow',
    left('file:' || path, 200), jsonb_build_object('path', path), sha256('')
FROM generate_series(1, 12000) AS n CROSS JOIN LATERAL
    (VALUES (0, %(path)s), (%(organisation)s, %(path)s || n)) AS write (organisation, path)
"""


def test_looks_at_few_writes_for_the_last_one_at_a_path(nexus):
    """Others write at the same path, and its own organisation at paths that begin like it."""

    def look():
        return last_write(SHARED, nexus.organisation.id)

    move("ledger_event", WRITES, {"path": SHARED, "organisation": nexus.organisation.id})
    touched, found = most_of(look, after_others=True)
    assert found is None
    assert touched < MOST


@pytest.mark.parametrize("look", ["the frame it is in", "a frame that waits"])
def test_looks_at_few_frames_of_an_agent_that_ended_many(nexus, look):
    caller = nexus.caller("qa_worker")
    ended = "UPDATE toolbox_frame SET assignee_id = %s WHERE state = 'returned'"
    move("toolbox_frame", ended, caller.agent.id)
    touched, found = most_of(lambda: LOOKS[look](caller))
    assert not found
    assert touched < MOST


INPUTS_OF_OTHERS = """
INSERT INTO governance_artifact (id, organisation_id, case_id, number, round, stage, revision,
    author_id, author_name, outcome, content, evidence, signals, sha256, created_at)
SELECT n::text, n + 1000, 'CASE-' || n, 1, 1, 'ANALYSIS', 0, 1, '', 'OK', '{}', '[]', '{}',
    repeat('a', 64), now()
FROM generate_series(1, %s) AS n
"""
INPUTS = """
INSERT INTO governance_artifact (id, organisation_id, case_id, number, round, stage, revision,
    author_id, author_name, outcome, content, evidence, signals, sha256, created_at)
SELECT input.stage, c.organisation_id, c.id, n, c.round, input.stage, 0, c.opened_by_id, '',
    outcome, '{}', evidence::jsonb, '{}', repeat('a', 64), now()
FROM governance_case c, (VALUES (1, 'REVIEW', 'APPROVED', '[]'), (2, 'TEST', 'PASSED', '[1]'))
    AS input (n, stage, outcome, evidence)
WHERE c.id = %s
"""
SEARCHES = """
SELECT seq_tup_read + idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'governance_artifact'
"""


def test_a_delivery_searches_for_its_inputs_in_no_other_organisation(nexus):
    move("governance_artifact", INPUTS_OF_OTHERS, MOST)
    case = Case.objects.filter(state="open").first()
    with connection.cursor() as cursor:
        cursor.execute(INPUTS, [case.id])
        cursor.execute(SEARCHES)
        (before,) = cursor.fetchone()
        Case.objects.filter(id=case.id).update(state="delivered", stage="VERDICT")
        cursor.execute(SEARCHES)
        (after,) = cursor.fetchone()
    assert after - before < 10


DEPENDENCIES = """
INSERT INTO tasks_dependency (organisation_id, blocker_id, blocked_id)
SELECT t.organisation_id, t.id, n.id FROM tasks_task t
JOIN tasks_task n ON n.organisation_id = t.organisation_id AND n.number = t.number + 1
WHERE t.organisation_id = %s
"""
ROWS_READ = """
SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables
WHERE relname IN ('tasks_task', 'tasks_dependency')
"""


def test_an_import_reads_no_tasks_of_the_organisation_that_imported_before(nexus):
    """One with many dependencies makes the plan for no organisation in particular the cheaper."""
    move("tasks_dependency", DEPENDENCIES, nexus.organisation.id)
    for _ in range(8):
        _in_circles(nexus.organisation.id, {}, joins_old=True)
    other = another_organisation()
    with connection.cursor() as cursor:
        cursor.execute(ROWS_READ)
        (before,) = cursor.fetchone()
        _in_circles(other.id, {}, joins_old=True)
        cursor.execute(ROWS_READ)
        (after,) = cursor.fetchone()
    assert after - before < MOST


@pytest.mark.django_db
def test_what_is_planned_for_its_values_is_not_kept():
    def kept(statement):
        with connection.cursor() as cursor:
            for _ in range(3):
                cursor.execute(statement, [1])
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement = %s",
                [statement.replace("%s", "$1")],
            )
            return cursor.fetchone()[0]

    with planned_for_values():
        assert kept("SELECT %s::int + 1") == 0
    assert kept("SELECT %s::int + 2") == 1
