"""What every test stands on: a real PostgreSQL and folders of the test's own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test.utils import setup_databases, teardown_databases
from django.utils import translation

from core.waiting import ringing
from orgchart.compiling import POLICIES
from tests.company import Company, load_company
from tests.next_steps import every_refusal_checked
from tests.stream_events import every_event_checked
from tests.template import template
from toolbox import authentication, wake

ONLY_GROW = (
    "ledger_event",
    "ledger_seal",
    "mailroom_mail",
    "mailroom_mailrejection",
    "documents_document",
    "documents_memory",
    "documents_artifact",
    "documents_keptfile",
    "contracts_contract",
    "contracts_report",
    "contracts_verdict",
    "contracts_orgchangeline",
    "governance_artifact",
    "governance_case",
    "governance_violation",
    "governance_intervention",
    "governance_codeattempt",
)

# A test's data need not survive a power cut.
os.environ.setdefault("PGOPTIONS", "-c synchronous_commit=off")


@pytest.fixture(autouse=True, scope="session")
def places_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test writes lands in this checkout's var/; the database server is shared."""
    settings.WORKSPACE_ROOT = tmp_path_factory.mktemp("company")
    settings.NEXUS_KEYS = tmp_path_factory.mktemp("keys")
    settings.LEDGER_DIR = tmp_path_factory.mktemp("ledger")


@pytest.fixture(autouse=True, scope="session")
def tests_may_empty_what_only_grows() -> Iterator[None]:
    """Tests of whole transactions empty every table afterwards; the ledger's triggers refuse."""
    guards = [f"TABLE {table} {{}} TRIGGER {table}_only_grows" for table in ONLY_GROW]
    off = [f"ALTER {guard.format('DISABLE')}" for guard in guards]
    on = [f"ALTER {guard.format('ENABLE')}" for guard in guards]
    flush = DatabaseOperations.execute_sql_flush

    def flush_with_guards_off(self: DatabaseOperations, sql_list: list[str]) -> None:
        flush(self, [*off, *sql_list, *on])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", flush_with_guards_off)
        yield


def forget() -> None:
    """Empty what a process remembers: another test's rows may come under the same ids.

    A page leaves its language to the thread; in the product no agent's call runs in that thread.
    """
    translation.deactivate()
    POLICIES.clear()
    authentication._last_recorded.clear()
    ringing.forget()


@pytest.fixture(autouse=True, scope="module")
def nothing_remembered_of_other_modules() -> None:
    """Fixtures of a module begin with empty caches."""
    forget()


@pytest.fixture(autouse=True)
def nothing_remembered_of_other_tests() -> None:
    """Every test begins with empty caches."""
    forget()


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: Any,
    django_db_keepdb: bool,
    django_db_createdb: bool,
) -> Iterator[None]:
    """A database of the tests' own for everybody who asks, whatever marks the tests carry.

    pytest-django's own makes one only where some test asks for `db`; without one, fixtures of
    modules would write into this checkout's installation.
    """
    keepdb = django_db_keepdb and not django_db_createdb
    with django_db_blocker.unblock():
        connection.settings_dict["TEST"]["TEMPLATE"] = template()
        made = setup_databases(verbosity=0, interactive=False, keepdb=keepdb)
    assert connection.settings_dict["NAME"] == connection.settings_dict["TEST"]["NAME"]
    yield
    with django_db_blocker.unblock():
        _let_go()
        if not django_db_keepdb:
            teardown_databases(made, verbosity=0)


def _let_go() -> None:
    """The threads that wake waiters keep connections; without them the database can be dropped."""
    wake.RETRY_SECONDS = 60.0
    connection.close()  # a test may have ended the server's side of it
    connection.close_pool()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(autouse=True)
def next_steps_can_be_taken() -> Iterator[None]:
    """No refusal in the suite names what its caller cannot use (Spec: wire 39)."""
    with every_refusal_checked() as failed:
        yield
    assert not failed, failed


@pytest.fixture(autouse=True)
def events_are_as_described() -> Iterator[None]:
    """No event in the suite reaches a stream in another form than the API describes."""
    with every_event_checked() as wrong:
        yield
    assert not wrong, wrong


@pytest.fixture(autouse=True)
def no_memory_files_of_other_tests() -> Iterator[None]:
    """A MEMORY.md that an earlier test left would be taken in as a person's edit."""
    yield
    for file in Path(settings.WORKSPACE_ROOT).rglob("MEMORY.md"):
        file.unlink(missing_ok=True)


@pytest.fixture
def nexus(db: None) -> Company:
    """The NEXUS company, loaded from its pack; its callers hold real keys."""
    return load_company("nexus")
