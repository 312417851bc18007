"""The checker: what was acknowledged is there, every effect once, the ledger equals the effects."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psycopg
from pydantic_core import from_json, to_json

from proofs.faults.installation import Installation
from proofs.faults.load import Call
from proofs.faults.receiver import Receiver

NOTED = """(SELECT subject, count(*) AS n FROM ledger_event WHERE action = '{}' GROUP BY 1)"""

EVENTS = {
    "a mail without exactly one event": f"""
        SELECT m.id FROM mailroom_mail m
        LEFT JOIN {NOTED.format("mail.delivered")} e ON e.subject = 'mail:' || m.id
        LEFT JOIN mailroom_mailrejection r ON m.from_agent = 'system'
            AND r.attempted_at = m.created_at AND m.to_agent = r.from_agent
        WHERE coalesce(e.n, 0) <> CASE WHEN r.id IS NULL THEN 1 ELSE 0 END""",
    "a mail's event without its mail": """
        SELECT e.subject FROM ledger_event e
        LEFT JOIN mailroom_mail m ON e.subject = 'mail:' || m.id
        WHERE e.action = 'mail.delivered' AND m.id IS NULL""",
    "a refused mail without exactly one event": """
        SELECT r.id FROM mailroom_mailrejection r
        LEFT JOIN ledger_event e ON e.action = 'tool.denied' AND e.at = r.attempted_at
            AND e.code = r.code AND e.actor LIKE '%%' || r.from_agent || '%%'
        GROUP BY r.id HAVING count(e.seq) <> 1""",
    "a contract without exactly one event of its issue": f"""
        SELECT c.id FROM contracts_contract c
        LEFT JOIN {NOTED.format("contract.issued")} e ON e.subject = 'contract:' || c.id
        WHERE coalesce(e.n, 0) <> 1""",
    "a contract whose moves are not its events": """
        SELECT c.id FROM contracts_contract c
        LEFT JOIN ledger_event e ON e.subject = 'contract:' || c.id AND e.details ? 'from_state'
        GROUP BY c.id HAVING count(e.seq) <> c.version - 1
            OR count(DISTINCT e.details->>'version') <> c.version - 1""",
    "a contract's event without its contract": """
        SELECT e.subject FROM ledger_event e
        LEFT JOIN contracts_contract c ON e.subject = 'contract:' || c.id
        WHERE e.action LIKE 'contract.%%' AND c.id IS NULL""",
    "a report without exactly one event": """
        SELECT r.id FROM contracts_report r
        LEFT JOIN ledger_event e ON e.details->>'report' = r.id::text
            AND e.subject = 'contract:' || r.contract_id
        GROUP BY r.id HAVING count(e.seq) <> 1""",
    "a document without exactly one event": """
        SELECT d.id FROM documents_document d
        LEFT JOIN ledger_event e ON e.subject = 'document:' || d.id
            AND e.action IN ('note.written', 'prd.written', 'report.written', 'report.filed')
        GROUP BY d.id HAVING count(e.seq) <> 1""",
    "a note for the Board without exactly one mail to it": """
        SELECT d.id FROM documents_document d
        LEFT JOIN mailroom_mail m ON m.to_agent = 'board' AND m.subject = d.title
            AND m.created_at = d.created_at
        WHERE d.for_board GROUP BY d.id HAVING count(m.id) <> 1""",
    "a document's event without its document": """
        SELECT e.subject FROM ledger_event e
        LEFT JOIN documents_document d ON e.subject = 'document:' || d.id
        WHERE e.subject LIKE 'document:%%' AND d.id IS NULL""",
    "a task whose changes are not its events": """
        SELECT t.number FROM tasks_task t JOIN orgchart_organisation o ON o.id = t.organisation_id
        LEFT JOIN ledger_event e ON e.subject = 'task:' || o.slug || '/' || t.number
        GROUP BY t.id HAVING count(*) FILTER (WHERE e.action = 'task.created') <> 1
            OR count(*) FILTER (WHERE e.details ? 'version') <> t.version - 1
            OR count(DISTINCT e.details->>'version') <> t.version - 1""",
    "an escalation without exactly one event of its beginning": """
        SELECT x.id FROM mailroom_escalation x
        LEFT JOIN ledger_event e ON e.details->>'mail' = x.mail_id
            AND e.action IN ('escalation.opened', 'escalation.ceo_told')
        GROUP BY x.id HAVING count(e.seq) <> 1""",
    "an escalation whose time ran out, not told once": """
        SELECT x.id FROM mailroom_escalation x
        LEFT JOIN ledger_event e ON e.subject = 'escalation:' || x.id
            AND e.action = 'escalation.unanswered'
        GROUP BY x.id HAVING count(e.seq) > 1 OR (x.state = 'unanswered' AND count(e.seq) <> 1)""",
    "a sender not told once that nobody answered": """
        WITH told AS (
            SELECT substring(body from 'follows=([0-9]+)') AS id, count(*) AS n
            FROM mailroom_mail WHERE from_agent = 'system' AND body LIKE '%%follows=%%' GROUP BY 1
        ), due AS (
            SELECT subject FROM ledger_event WHERE action = 'escalation.unanswered'
        )
        SELECT due.subject, told.id
        FROM due FULL JOIN told ON due.subject = 'escalation:' || told.id
        WHERE told.id IS NULL OR due.subject IS NULL OR told.n <> 1""",
    "the Board not told once of a thread": """
        SELECT x.id FROM mailroom_escalation x
        LEFT JOIN mailroom_outgoingnotice n ON n.payload->'data'->>'escalation' = x.id::text
        GROUP BY x.id HAVING count(n.id) <> CASE WHEN x.told_board_at IS NULL THEN 0 ELSE 1 END""",
    "the CEO not told of a thread, or told again before its answer": """
        SELECT x.id FROM mailroom_escalation x
        LEFT JOIN ledger_event e ON e.subject = 'escalation:' || x.id
            AND e.action = 'escalation.ceo_told'
        GROUP BY x.id HAVING (count(e.seq) = 0) <> (x.told_ceo_at IS NULL)
        UNION ALL
        SELECT coalesce(f.first_id, f.id) FROM mailroom_escalation n
        JOIN mailroom_mail m ON m.id = n.mail_id AND m.sender_id IS NULL
        JOIN mailroom_escalation f ON f.id = n.follows_id
        WHERE n.state IN ('open', 'unanswered')
        GROUP BY coalesce(f.first_id, f.id) HAVING count(*) > 1""",
    "a deadline told twice": """
        SELECT subject, action FROM ledger_event
        WHERE action IN ('contract.reminded', 'contract.overdue')
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "a deadline that passed in silence": """
        SELECT c.id FROM contracts_deadline d JOIN contracts_contract c ON c.id = d.contract_id
        LEFT JOIN ledger_event e ON e.subject = 'contract:' || c.id
            AND e.action = 'contract.overdue'
        WHERE d.stage = 'overdue' AND d.done_at IS NOT NULL
            AND c.state IN ('pending', 'in_progress') AND e.seq IS NULL""",
    "a deadline told without its event, or the other way round": """
        WITH told AS (
            SELECT contract_ref, count(*) AS n FROM mailroom_mail
            WHERE from_agent = 'system' AND subject LIKE ANY (ARRAY['%% due soon', '%% overdue'])
            GROUP BY 1
        ), noted AS (
            SELECT substr(subject, 10) AS id, count(*) AS n FROM ledger_event
            WHERE action IN ('contract.reminded', 'contract.overdue') GROUP BY 1
        )
        SELECT coalesce(id, contract_ref) FROM told FULL JOIN noted ON id = contract_ref
        WHERE told.n IS DISTINCT FROM noted.n""",
    "a notice without exactly one event": f"""
        SELECT n.event_id FROM mailroom_outgoingnotice n
        LEFT JOIN {NOTED.format("notice.written")} w ON w.subject = 'notice:' || n.event_id
        LEFT JOIN {NOTED.format("notice.sent")} s ON s.subject = 'notice:' || n.event_id
        WHERE coalesce(w.n, 0) <> 1
            OR coalesce(s.n, 0) <> CASE n.state WHEN 'sent' THEN 1 ELSE 0 END""",
}
"""What must never be found, in any snapshot: each statement finds what breaks its sentence."""

DUE = """
    SELECT 'escalation ' || id FROM mailroom_escalation
        WHERE state = 'open' AND due_at < now() + '5 s'
    UNION ALL SELECT 'notice ' || event_id FROM mailroom_outgoingnotice WHERE state = 'pending'
    UNION ALL SELECT 'deadline ' || id FROM contracts_deadline
        WHERE done_at IS NULL AND due_at < now() + '5 s'
    UNION ALL SELECT 'file of document ' || id FROM documents_document WHERE filed_at IS NULL
    UNION ALL SELECT 'claim ' || number FROM tasks_task WHERE lease_due_at < now() + '5 s'
"""
"""What is due, or will be before it is looked at again; with nobody at work nothing else comes."""
MARKED = """
    SELECT subject, 'mail_id', id FROM mailroom_mail WHERE subject LIKE 'mark %%'
        AND mail_type NOT IN ('contract', 'report') AND to_agent <> 'board'
    UNION ALL SELECT title, 'contract_id', id FROM contracts_contract
    UNION ALL SELECT title, 'report_id', id::text FROM contracts_report
    UNION ALL SELECT title, 'document_id', id::text FROM documents_document WHERE kind = 'note'
    UNION ALL SELECT subject, 'id', number::text FROM tasks_task
"""
MAKES = {
    "send_mail": "mail_id",
    "escalate": "mail_id",
    "create_contract": "contract_id",
    "generate_contract": "contract_id",
    "submit_report": "report_id",
    "write_note": "document_id",
    "task_create": "id",
}


def complaints(
    one: Installation, calls: Sequence[Call], receiver: Receiver, *, settled: bool = False
) -> list[str]:
    """Everything that is not as it was promised, in one snapshot of the database.

    `settled`: nobody works any more, so nothing may be left that is due.
    """
    calls = list(calls)  # those acknowledged before the snapshot
    unrecorded = one.log.count("denial_not_recorded")
    with one.connect() as database, database.transaction():
        database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = [
            f"{sentence}: {row}"
            for sentence, query in EVENTS.items()
            for row in database.execute(query.replace("%%", "%")).fetchall()
        ]
        found += _effects(database, calls)
        found += _answers(database, calls, unrecorded)
        found += _refusals(database, calls, unrecorded)
        found += _arrivals(database, receiver)
        found += _files(database, one.tree)
        if settled:
            found += [f"still due: {row}" for (row,) in database.execute(DUE)]
    return found


def _effects(database: psycopg.Connection, calls: Iterable[Call]) -> Iterator[str]:
    """Each acknowledged effect is there under its id; each effect at all is there once."""
    rows = database.execute(MARKED.replace("%%", "%")).fetchall()
    times = Counter(subject for subject, _, _ in rows)
    yield from (f"an effect {n} times: {subject}" for subject, n in times.items() if n > 1)
    there = {(subject, name): made for subject, name, made in rows}
    for call in calls:
        name = MAKES.get(call.tool)
        if name is None or call.status != 200:
            continue
        subject = call.params.get("subject") or call.params["title"]
        if there.get((subject, name)) != call.result[name]:
            yield f"acknowledged, but not there: {call.tool} {call.result[name]} {subject}"


def _answers(database: psycopg.Connection, calls: Iterable[Call], unrecorded: int) -> Iterator[str]:
    """Each acknowledged key has its answer; a refusal that could not be recorded has none.

    Such a refusal stands (the call was not carried out), and the log says that it left no trace.
    """
    refused = 0
    query = "SELECT key, status, answer FROM toolbox_idempotencyrecord"
    kept = {
        key: (status, None if answer is None else from_json(answer))
        for key, status, answer in database.execute(query)
    }
    for call in calls:
        if call.key not in kept and call.status != 200:
            refused += 1
        elif kept.get(call.key) != (call.status, call.answer):
            yield f"an answer that was not kept: {call.tool} {call.key}"
    if refused > unrecorded:
        yield f"{refused} refusals whose answer was not kept, {unrecorded} of them explained"


def _refusals(
    database: psycopg.Connection, calls: Iterable[Call], unrecorded: int
) -> Iterator[str]:
    """Each acknowledged refusal has one event, unless it could not be recorded."""
    query = "SELECT args_digest, count(*) FROM ledger_event WHERE action = 'tool.denied' GROUP BY 1"
    noted = dict(database.execute(query).fetchall())
    missing = 0
    for call in calls:
        if 400 <= call.status < 500:
            times = noted.get(hashlib.sha256(to_json(call.params)).hexdigest(), 0)
            missing += not times
            if times > 1:
                yield f"a refusal {times} times: {call.tool} {call.key}"
    if missing > unrecorded:
        yield f"{missing} refusals without their event, {unrecorded} of them explained"


def _arrivals(database: psycopg.Connection, receiver: Receiver) -> Iterator[str]:
    """Each notice that was sent has arrived, with one id and one text; nothing else has."""
    query = "SELECT event_id::text, state FROM mailroom_outgoingnotice WHERE channel = 'webhook'"
    written = dict(database.execute(query).fetchall())
    for name, state in written.items():
        if state == "sent" and not receiver.arrived[name]:
            yield f"said to be sent, but never arrived: {name}"
        if state == "dead":
            yield f"given up, though the receiver lives: {name}"
    for name, texts in list(receiver.bodies.items()):
        if name in written and len(texts) > 1:
            yield f"one notice with {len(texts)} texts: {name}"


def _files(database: psycopg.Connection, tree: Path) -> Iterator[str]:
    """Each document whose row says that its file is there has it, with its text."""
    query = """
        SELECT o.slug || '/' || d.path, d.sha256 FROM documents_document d
        JOIN orgchart_organisation o ON o.id = d.organisation_id WHERE d.filed_at IS NOT NULL
    """
    for path, digest in database.execute(query):
        try:
            text = tree.joinpath(path).read_bytes()
        except FileNotFoundError:
            yield f"a document whose file is not there: {path}"
        else:
            if hashlib.sha256(text).hexdigest() != digest:
                yield f"a document whose file has another text: {path}"
