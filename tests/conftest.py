"""What every test stands on: a real PostgreSQL and folders of the test's own."""

import gc
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.management.commands import flush
from django.db import connection
from django.template import Template
from django.test.utils import _TestState, setup_databases, teardown_databases
from django.utils import translation

from core.waiting import ringing
from documents import root
from ledger.keys import forget_head
from nexus_site.run import cluster_lock
from orgchart.policy_cache import POLICIES
from tests.company import Company, load_company
from tests.next_steps import every_refusal_checked
from tests.patience import PATIENCE, over  # noqa: F401  a fixture
from tests.rows import delete_all, written_by_migrate
from tests.stream_events import every_event_checked
from tests.template import template
from toolbox import authentication, denial_limits, rates, wake
from toolbox.quotas.stored import AHEAD

LONG = (
    "tests/browser/",
    "tests/clients/",
    "tests/nexus_site/",
    "tests/admin/",
    "tests/workspace/",
    "tests/journeys/",
    "tests/governance/cases/",
)
"""What takes long begins first, so that no worker ends long after the others."""
SEALING = ("tests/mailroom/test_time_matrix.py", "tests/ledger/")
"""What waits until every open transaction on the server has ended, those of other workers' tests
too, comes last: long tests would keep it waiting, and beside each other these hardly wait. The
longest file of them is first."""

# A test's data need not survive a power cut.
os.environ.setdefault("PGOPTIONS", "-c synchronous_commit=off")


# How fast this machine is decides nothing.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

gc.disable()  # while twelve thousand tests are collected: nothing of that is garbage


def pytest_collection_finish() -> None:
    """Look for garbage from now on, but no more at what was collected."""
    gc.enable()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring long files to the front, sealing to the end: workers take files in this order."""
    order = (*LONG, "", *SEALING)

    def place(item: pytest.Item) -> int:
        found = (n for n, start in enumerate(order) if start and item.nodeid.startswith(start))
        return next(found, len(LONG))

    items.sort(key=place)


@pytest.fixture(autouse=True, scope="session")
def places_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test writes lands in this checkout's var/; the database server is shared."""
    settings.WORKSPACE_ROOT = tmp_path_factory.mktemp("company")
    settings.NEXUS_KEYS = tmp_path_factory.mktemp("keys")
    settings.LEDGER_DIR = tmp_path_factory.mktemp("ledger")
    root.KNOWN = str(tmp_path_factory.mktemp("known") / root.KNOWN)


@pytest.fixture(autouse=True, scope="session")
def cheap_passwords() -> None:
    """Passwords are hashed as the product hashes them, with less work."""
    Argon2PasswordHasher.time_cost = 1
    Argon2PasswordHasher.memory_cost = 8  # KiB, the least for one thread
    Argon2PasswordHasher.parallelism = 1


@pytest.fixture(autouse=True, scope="session")
def alarms_that_are_kept() -> None:
    """Alarms are asked for once in a test, so how fast its machine is changes no count of queries.

    A test that waits for a newer answer says `ringing.forget()`.
    """
    ringing._seconds = 3600.0


@pytest.fixture(autouse=True, scope="session")
def templates_of_the_product(django_test_environment: None) -> None:
    """Templates keep no copy of what they are given, as Django's test environment has it."""
    Template._render = _TestState.saved_data.template_render


def forget() -> None:
    """Empty what a process remembers: another test's rows may come under the same ids.

    A page leaves its language to the thread; in the product no agent's call runs in that thread.
    """
    translation.deactivate()
    POLICIES.clear()
    authentication._last_recorded.clear()
    denial_limits._last_recorded.clear()
    ringing.forget()
    AHEAD.take_all()
    rates.AHEAD.forget()
    root.forget_root()


@pytest.fixture(autouse=True, scope="module")
def nothing_of_other_modules() -> Iterator[None]:
    """Fixtures of a module begin with empty caches, an empty company tree and no chain of seals.

    Each of its tests looks through that tree afterwards.
    """
    forget()
    forget_head()
    yield
    shutil.rmtree(settings.WORKSPACE_ROOT, ignore_errors=True)
    settings.WORKSPACE_ROOT.mkdir(mode=0o700, exist_ok=True)


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
        kept = written_by_migrate()
    assert connection.settings_dict["NAME"] == connection.settings_dict["TEST"]["NAME"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush.Command, "handle", lambda *_args, **_options: delete_all(kept))
        yield
    with django_db_blocker.unblock():
        _let_go()
        if not django_db_keepdb:
            teardown_databases(made, verbosity=0)
    # Not left to `atexit`: a worker whose threads still wait is killed before it comes so far.
    for lock in [*cluster_lock._locks.values()]:
        lock.release()


def _let_go() -> None:
    """End what keeps a connection; without it the database can be dropped.

    The threads that wake waiters stand still from their next pause on: later they would say on a
    closed stream that their connection is lost.
    """
    paused = threading.Semaphore(0)

    def pause(_seconds: float) -> None:
        paused.release()
        threading.Event().wait()

    wake.time = SimpleNamespace(monotonic=time.monotonic, sleep=pause)
    wake._outgoing.put(0)
    connection.close()  # a test may have ended the server's side of it
    connection.close_pool()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    for _ in filter(threading.Thread.is_alive, wake._threads.values()):
        paused.acquire(timeout=PATIENCE)
    connection.close()
    connection.close_pool()


@pytest.fixture(autouse=True, scope="session")
def found_wrong() -> Iterator[list[str]]:
    """Refusals that name what their caller cannot use, and events of an undescribed form."""
    found: list[str] = []
    with every_refusal_checked(found), every_event_checked(found):
        yield found


@pytest.fixture(autouse=True)
def nothing_of_other_tests(found_wrong: list[str]) -> Iterator[None]:
    """Every test begins with empty caches.

    No refusal in the suite names what its caller cannot use (Spec: wire 39), and no event reaches a
    stream in another form than the API describes. One fixture for all of it, for it is set up for
    each of twelve thousand tests.
    """
    forget()
    found_wrong.clear()
    yield
    for file in Path(settings.WORKSPACE_ROOT).rglob("MEMORY.md"):
        file.unlink(missing_ok=True)  # the next test would take it in as a person's edit
    assert not found_wrong, found_wrong


@pytest.fixture
def nexus(db: None) -> Company:
    """The NEXUS company, loaded from its pack; its callers hold real keys."""
    return load_company("nexus")
