"""Companies for benchmarks, in a database of their own: the NEXUS pack, and a thousand copies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, models
from django.utils import timezone

from core.actors import System
from core.key_form import KEY_PREFIX
from orgchart.keys import digest_of, issue_key
from orgchart.models import (
    Agent,
    Alias,
    ApiKey,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
    ToolOverride,
)
from orgchart.packs import load_pack
from orgchart.policy_cache import POLICIES

DATABASE = "nexus_bench_"
ABANDONED = """
SELECT datname FROM pg_database d WHERE starts_with(datname, %s)
AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datid = d.oid)
"""

WORKERS = 32
"""Backend workers of the first organisation: an agent for each client, as agents call."""
MANY = 1000
"""Copies of the first organisation."""
STEP = 1_000_000
"""What the ids of one copy have more than those of the copy before."""
COPIED: tuple[type[models.Model], ...] = (
    *(Organisation, Role, Group, Agent, Agent.co_managers.through, Alias),
    *(MailTypeRule, ContactRule, ToolOverride),
)

FILL_MAILBOX = """
INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent, to_agent,
    mail_type, subject, body, status, created_at, delivered_at, read_at)
SELECT 'MAIL-' || to_char(%(until)s::timestamptz - n * interval '1 millisecond',
                          'YYYYMMDDHH24MISSUS') || '-fill',
       %(organisation)s, %(sender)s, %(recipient)s, 'it_manager', %(handle)s, 'info',
       'Status ' || n, repeat('All is well. ', 20),
       CASE WHEN n > %(unread)s THEN 'read' ELSE 'delivered' END,
       %(until)s::timestamptz - n * interval '1 millisecond', %(until)s,
       CASE WHEN n > %(unread)s THEN %(until)s::timestamptz END
FROM generate_series(1, %(count)s) n
"""
FILL_TASKS = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, completed_at)
SELECT %(organisation)s, n, 'Task ' || n, repeat('All is well. ', 10), '',
    (ARRAY['pending', 'completed'])[n %% 2 + 1], '{}',
    (ARRAY['', 'backend_worker', 'frontend_worker', 'qa_worker'])[n / 2 %% 4 + 1],
    (ARRAY['', 'testing', 'bug_fix'])[n %% 3 + 1], 'system:bench', now()
FROM generate_series(1, %(count)s) AS n
"""


@contextmanager
def own_database(own: str = DATABASE) -> Iterator[str]:
    """Work in a database of one's own; its DATABASE_URL. It is dropped at the end."""
    given = connection.settings_dict
    creator = connection.creation
    name, own = given["NAME"], f"{DATABASE}{os.getpid()}"
    with connection._nodb_cursor() as cursor:  # noqa: SLF001  Django's own way to make a database
        cursor.execute(ABANDONED, [DATABASE])
        for (left,) in cursor.fetchall():
            cursor.execute(f'DROP DATABASE IF EXISTS "{left}"')
        cursor.execute(f'CREATE DATABASE "{own}"')
    _switch(own)
    try:
        call_command("migrate", verbosity=0, interactive=False)
        yield (
            f"postgresql://{quote(given['USER'])}:{quote(given.get('PASSWORD') or '')}@/{own}"
            f"?host={quote(str(given['HOST']), safe='')}&port={given.get('PORT') or 5432}"
        )
    finally:
        _switch(name)
        with creator.connection._nodb_cursor() as cursor:  # noqa: SLF001
            cursor.execute(f'DROP DATABASE IF EXISTS "{own}" WITH (FORCE)')


def _switch(name: str) -> None:
    connections.close_all()
    connection.close_pool()  # type: ignore[attr-defined]
    connection.settings_dict["NAME"] = name


@dataclass(frozen=True)
class Company:
    """The NEXUS company with a key for each agent, and copies with a key for one agent of each."""

    organisation: Organisation
    keys: dict[str, str]

    @property
    def workers(self) -> list[str]:
        """Handles of the backend workers."""
        return [handle for handle in self.keys if handle.startswith("backend_worker")]

    @cached_property
    def ids(self) -> dict[str, int]:
        """Agents' ids by handle."""
        return {agent.handle: agent.id for agent in self.organisation.agents.all()}

    @cached_property
    def copied_keys(self) -> list[str]:
        """The keys of the copies' backend workers; the copies are made when first asked for."""
        for model in COPIED:
            _copy(model)
        agent, keys = self.ids["backend_worker"], [f"{KEY_PREFIX}{n:043d}" for n in range(MANY)]
        ApiKey.objects.bulk_create(
            ApiKey(
                agent_id=agent + (number + 1) * STEP,
                prefix=f"bench{number}",
                digest=digest_of(key),
                created_by="system:bench",
            )
            for number, key in enumerate(keys)
        )
        return keys

    def fill_mailbox(self, handle: str, *, count: int, unread: int) -> None:
        """Put mails of the IT manager into an agent's box; the newest are unread."""
        values: dict[str, Any] = {
            "until": timezone.now(),
            "organisation": self.organisation.id,
            "sender": self.ids["it_manager"],
            "recipient": self.ids[handle],
            "handle": handle,
            "count": count,
            "unread": unread,
        }
        with connection.cursor() as cursor:
            cursor.execute(FILL_MAILBOX, values)
            cursor.execute("VACUUM ANALYZE mailroom_mail")

    def fill_tasks(self, *, count: int, copy: int = 0) -> None:
        """Put tasks into a copy (0: the company): half of them pending, of four roles."""
        if copy:
            _ = self.copied_keys  # makes the copies
        organisation = self.organisation.id + copy * STEP
        with connection.cursor() as cursor:
            cursor.execute(FILL_TASKS, {"organisation": organisation, "count": count})
            cursor.execute("INSERT INTO tasks_counter VALUES (%s, %s)", [organisation, count])
            cursor.execute("VACUUM ANALYZE tasks_task")

    def free_tasks(self) -> Iterator[int]:
        """Numbers of pending tasks that a backend worker may claim, each once."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT number FROM tasks_task WHERE organisation_id = %s AND status = 'pending' "
                "AND owner_id IS NULL AND required_role IN ('', 'backend_worker') "
                "AND task_type <> 'testing' ORDER BY number DESC",
                [self.organisation.id],
            )
            return iter([number for (number,) in cursor.fetchall()])


def found_company() -> Company:
    """Load the NEXUS pack and issue a key for each agent."""
    now = timezone.now()
    POLICIES.clear()
    load_pack(
        settings.BASE_DIR / "packs" / "nexus",
        caller=System(name="bench", organisation_id=0),
        now=now,
    )
    organisation = Organisation.objects.get(slug="nexus")
    _hire(organisation)
    system = System(name="bench", organisation_id=organisation.id)
    keys = {
        agent.handle: issue_key(agent=agent, caller=system, now=now)
        for agent in organisation.agents.all()
    }
    return Company(organisation, keys)


def _hire(organisation: Organisation) -> None:
    """Give the backend worker colleagues, before anybody has read the policy."""
    first = organisation.agents.get(handle="backend_worker")
    Agent.objects.bulk_create(
        Agent(
            organisation=organisation,
            handle=f"{first.handle}_{number}",
            role=first.role,
            reports_to=first.reports_to,
        )
        for number in range(2, WORKERS + 1)
    )


def _copy(model: type[models.Model]) -> None:
    """Insert the rows of a table for every copy, with ids that lie STEP apart."""
    meta = model._meta  # noqa: SLF001  Django's public name
    columns, values = [], []
    for field in meta.concrete_fields:
        name = str(field.column)
        columns.append(name)
        moved = field.primary_key or field.remote_field is not None
        value = f"{name} + n * {STEP}" if moved else name
        values.append("slug || n" if model is Organisation and name == "slug" else value)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({', '.join(columns)}) SELECT {', '.join(values)} "
            f"FROM {meta.db_table} CROSS JOIN generate_series(1, {MANY}) AS n"
        )
