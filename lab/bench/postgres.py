"""PostgreSQL's own rate for the same statements, by its own tool: pgbench."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations

from core.actions import Action
from core.events import Event
from lab.bench.load import Rate
from ledger.sql import TYPES
from mailroom.delivery import INSERT_MAIL
from nexus_site.run.postgres import binaries
from tasks.rules.changes import TaskChange
from tasks.rules.values import TaskRow
from tasks.store import save_change

WHERE = ("host", "port", "user", "password", "dbname")


def literal(statement: str, values: dict[str, object]) -> str:
    """The statement as one line of SQL with its values in it."""
    operations = cast("DatabaseOperations", connection.ops)
    text = operations.compose_sql(statement, values)
    return " ".join(text.split())


class _Seen(Exception):
    """Ends the work whose first statement was wanted."""


def first_statement(work: Callable[[], object]) -> tuple[str, dict[str, object]]:
    """The first statement that the work would execute, with its parameters; nothing is executed."""

    def keep(execute: object, sql: str, params: dict[str, object], *rest: object) -> object:
        raise _Seen(sql, params)

    try:
        with connection.execute_wrapper(keep):
            work()
    except _Seen as seen:
        return seen.args[0], seen.args[1]
    raise RuntimeError("the work executed no statement")


def save_task_script(organisation: int, values: Mapping[str, object], now: datetime) -> str:
    """The statement that saves a change of the task `:n` and its event."""
    event = Event(action=Action.TASK_UPDATED, actor="system:bench", at=now)
    row = TaskRow(**dict.fromkeys((field.name for field in fields(TaskRow)), None))  # type: ignore[arg-type]
    text, params = first_statement(
        lambda: save_change(
            replace(row, id=0, version=1), TaskChange(event=event, values=dict(values))
        )
    )
    params |= {f"ev_{name}": value for name, value in event_values(organisation, None, now).items()}
    text = literal(text, params | {"swap_key": "@id@"}).replace("version = 1", "version >= 1")
    mine = f"(SELECT id FROM tasks_task WHERE organisation_id = {organisation} AND number = :n)"
    return text.replace("'@id@'", mine)


def measure(*, script: str, clients: int, seconds: int) -> Rate:
    """Run one script by pgbench on the present database.

    Raises RuntimeError with pgbench's words where it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "script.sql"
        file.write_text(script + ";\n")
        log = Path(folder) / "times"
        info = connection.get_connection_params()
        command = [
            str(binaries() / "pgbench"),
            "-n",
            "-f",
            str(file),
            "-c",
            str(clients),
            "-j",
            "2",
            "-T",
            str(seconds),
            "-l",
            "--log-prefix",
            str(log),
            " ".join(f"{name}={info[name]}" for name in WHERE if info.get(name)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-500:])
        times = [
            int(line.split()[2]) / 1e6
            for part in Path(folder).glob("times*")
            for line in part.read_text().splitlines()
        ]
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    return Rate.of(times, len(times) / float(found[1]) if found else seconds, 0)


def event_values(organisation: int, agent: int | None, now: datetime) -> dict[str, object]:
    """An event's columns; its id, `@event@`, is for the script to replace."""
    return dict.fromkeys(TYPES, "x") | {
        "id": "@event@",
        "at": now,
        "organisation_id": organisation,
        "policy_version": 1,
        "for_agent_id": agent,
        "details": "{}",
        "digest": b"\0" * 32,
        "decision": "allow",
    }


def send_script(organisation: int, agents: dict[str, int]) -> str:
    """The statement of send_mail with an id that PostgreSQL makes itself."""
    now = datetime.now(UTC)
    mail = dict.fromkeys(("from", "to", "type", "subject", "body", "priority"), "x") | {
        "id": "@mail@",
        "organisation": organisation,
        "sender": agents["backend_worker"],
        "recipient": agents["it_manager"],
        "body": "All is well. " * 20,
        "priority": "medium",
        "attachments": "[]",
        "reply_to": None,
        "contract_ref": None,
        "at": now,
        "route_log": "[]",
        "quoted": None,
    }
    event = event_values(organisation, agents["it_manager"], now)
    text = literal(
        INSERT_MAIL,
        {f"m_{k}": v for k, v in mail.items()} | {f"ev_{k}": v for k, v in event.items()},
    )
    stamp = "to_char(clock_timestamp(), 'YYYYMMDDHH24MISSUS')"
    return text.replace(
        "'@mail@'", f"'MAIL-' || {stamp} || substr(md5(random()::text), 1, 6)"
    ).replace("'@event@'", "gen_random_uuid()")
