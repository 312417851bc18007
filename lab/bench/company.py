"""A company of its own for benchmarks: its own database, the NEXUS pack, mailboxes of two sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from urllib.parse import quote

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from core.actors import System
from orgchart.compiling import POLICIES
from orgchart.models import Agent, Organisation
from orgchart.packs import load_pack
from orgchart.services import issue_key

DATABASE = "nexus_bench_"
ABANDONED = """
SELECT datname FROM pg_database d WHERE starts_with(datname, %s)
AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datid = d.oid)
"""

FILL = """
INSERT INTO mailroom_mail (id, organisation_id, sender_id, recipient_id, from_agent, to_agent,
    mail_type, subject, body, status, created_at, delivered_at, read_at)
SELECT 'MAIL-' || to_char(%(until)s::timestamptz - n * interval '1 millisecond',
                          'YYYYMMDDHH24MISSUS') || '-fill',
       %(organisation)s, %(sender)s, %(recipient)s, 'it_manager', %(handle)s, 'info',
       'Status ' || n, repeat('All is well. ', 20), 'delivered',
       %(until)s::timestamptz - n * interval '1 millisecond', %(until)s, NULL
FROM generate_series(1, %(count)s) n
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


def found() -> tuple[Organisation, dict[str, str]]:
    """The NEXUS company with a key for each agent."""
    now = timezone.now()
    POLICIES.clear()
    system = System(name="bench", organisation_id=0)
    load_pack(settings.BASE_DIR / "packs" / "nexus", caller=system, now=now)
    organisation = Organisation.objects.get(slug="nexus")
    return organisation, {a.handle: key_of(a, now) for a in organisation.agents.all()}


def key_of(agent: Agent, now: datetime) -> str:
    """A fresh key."""
    system = System(name="bench", organisation_id=agent.organisation_id)
    return issue_key(agent=agent, caller=system, now=now)


def fill_mailbox(organisation: Organisation, handle: str, count: int) -> None:
    """Put `count` unread mails of the IT manager into an agent's box."""
    agents = {a.handle: a.id for a in organisation.agents.all()}
    with connection.cursor() as cursor:
        cursor.execute(
            FILL,
            {
                "until": timezone.now(),
                "organisation": organisation.id,
                "sender": agents["it_manager"],
                "recipient": agents[handle],
                "handle": handle,
                "count": count,
            },
        )
        cursor.execute("VACUUM ANALYZE mailroom_mail")
