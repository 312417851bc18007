"""PostgreSQL ends the connection of a call that is under way: what the caller is told, and done.

A lock of the test holds the call; then its connection is ended (Spec: wire 41).
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import monotonic

import httpx
import psycopg
import pytest
from django.db import InternalError, connection
from django.db.backends.postgresql.base import DatabaseWrapper

from core.database import give_back_connection
from mailroom.models import Mail
from nexus_site.serving import health
from tasks.models import Task
from tests.company import load_company
from tests.server import serving
from toolbox.authentication import meet_owner
from toolbox.scheduler import run_job

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = {"to": "backend_worker", "type": "info", "subject": "Hello", "body": "A word."}
KEY = {"Idempotency-Key": "once"}
PATIENCE = 60
WAITING = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()
"""
AT_COMMIT = """
CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON mailroom_mail
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
"""
NO_MORE = "DROP TRIGGER wait_at_commit ON mailroom_mail; DROP FUNCTION wait_at_commit()"

NO_MEMORY = """
CREATE FUNCTION no_memory() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION USING ERRCODE = 'out_of_memory'; END $$;
CREATE TRIGGER no_memory BEFORE INSERT ON mailroom_mail EXECUTE FUNCTION no_memory();
"""
MEMORY_AGAIN = "DROP TRIGGER no_memory ON mailroom_mail; DROP FUNCTION no_memory()"


class Server:
    """What the test does to PostgreSQL, by connections of its own."""

    def __init__(self):
        given = connection.get_connection_params()
        self.where = {n: given[n] for n in ("dbname", "user", "host", "port") if given.get(n)}

    def connect(self, **options):
        return psycopg.connect(**self.where, **options)

    @contextmanager
    def holding(self, lock):
        """Hold this lock; a function that gives it back."""
        with self.connect() as holder:
            holder.execute(lock)
            yield holder.rollback

    def end_what_waits(self, end="SELECT pg_terminate_backend(%s, 5000)"):
        """Wait until one connection waits for the lock, and end it."""
        until = monotonic() + PATIENCE
        with self.connect(autocommit=True) as other:
            while monotonic() < until:
                found = other.execute(WAITING).fetchone()
                if found:
                    other.execute(end, found)
                    return
        pytest.fail("no call came to the lock")


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def commits_wait(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute(AT_COMMIT)
    yield
    with connection.cursor() as cursor:
        cursor.execute(NO_MORE)


@pytest.fixture
def nexus(transactional_db):
    return load_company("nexus")


@pytest.fixture
def ask(nexus):
    """Ask the served company, in a thread: by REST, by MCP, or as a page."""
    with serving() as address, ThreadPoolExecutor(2) as threads, httpx.Client() as http:
        http.base_url, http.timeout = address, PATIENCE
        key = {"Authorization": f"Bearer {nexus.key('it_manager')}"}
        meet_owner(key["Authorization"])  # as if it had called before

        def rest(path, headers, params):
            return http.post(f"/api/v1/{path}", json=params, headers={**key, **headers})

        def mcp(path, headers, params):
            call = {"name": path.rpartition("/")[2], "arguments": params}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            accept = {"Accept": "application/json, text/event-stream"}
            return http.post("/mcp", json=message, headers={**key, **accept, **headers})

        def start(tool, *, face="rest", headers=None, **params):
            asked = {"rest": rest, "mcp": mcp}[face]
            return threads.submit(asked, f"tools/{tool}", headers or {}, params)

        start.get = lambda path, headers=key: threads.submit(http.get, path, headers=headers)
        yield start


def envelope(future):
    body = future.result(PATIENCE).json()
    return body["result"]["structuredContent"] if "jsonrpc" in body else body


def is_interrupted(body):
    assert "nothing" not in body["message"]
    assert "Idempotency-Key" in body["next_action"]
    return body["error_code"] == "DATABASE_UNAVAILABLE"


MAILS = "LOCK TABLE mailroom_mail IN SHARE MODE"
NOT_READABLE = "LOCK TABLE mailroom_mail IN ACCESS EXCLUSIVE MODE"
KEYS = "LOCK TABLE orgchart_apikey IN ACCESS EXCLUSIVE MODE"
COMMITS = "SELECT pg_advisory_xact_lock(4711)"


@pytest.mark.parametrize("face", ["rest", "mcp"])
class TestAConnectionEndedInTheMiddle:
    def test_is_told_and_leaves_nothing(self, server, ask, face):
        with server.holding(MAILS):
            answer = ask("send_mail", face=face, **MAIL)
            server.end_what_waits()
            assert is_interrupted(envelope(answer))
        assert not Mail.objects.exists()
        assert envelope(ask("send_mail", face=face, **MAIL))["ok"]

    def test_is_not_noticed_with_an_idempotency_key(self, server, ask, face):
        with server.holding(MAILS) as give_back:
            answer = ask("send_mail", face=face, headers=KEY, **MAIL)
            server.end_what_waits()
            give_back()
            assert envelope(answer)["ok"]
        assert Mail.objects.count() == 1

    def test_is_told_with_a_key_when_it_happens_again(self, server, ask, face):
        with server.holding(MAILS):
            answer = ask("send_mail", face=face, headers=KEY, **MAIL)
            server.end_what_waits()
            server.end_what_waits()
            assert is_interrupted(envelope(answer))
        assert not Mail.objects.exists()
        assert envelope(ask("send_mail", face=face, headers=KEY, **MAIL))["ok"]
        assert Mail.objects.count() == 1

    def test_is_not_noticed_by_who_only_reads(self, server, ask, face):
        with server.holding(NOT_READABLE) as give_back:
            answer = ask("read_inbox", face=face)
            server.end_what_waits()
            give_back()
            assert envelope(answer)["ok"]

    def test_is_not_noticed_at_the_first_statement(self, server, ask, face):
        with server.holding(KEYS) as give_back:
            answer = ask("send_mail", face=face, **MAIL)
            server.end_what_waits()
            give_back()
            assert envelope(answer)["ok"]
        assert Mail.objects.count() == 1


class TestTheAnswer:
    def test_is_503_and_says_when_to_come_again(self, server, ask):
        with server.holding(MAILS):
            answer = ask("send_mail", **MAIL)
            server.end_what_waits()
        assert answer.result(PATIENCE).status_code == 503
        assert answer.result().headers["Retry-After"] == "1"

    @pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/events", "/mcp"])
    def test_is_the_envelope_before_a_tool_is_known(self, server, ask, path):
        with server.holding(KEYS):
            answer = ask.get(path)
            server.end_what_waits()
            server.end_what_waits()
            assert is_interrupted(answer.result(PATIENCE).json())
        assert answer.result().status_code == 503

    def test_is_a_page_for_people(self, server, ask, admin_client):
        cookie = {"Cookie": "; ".join(f"{n}={m.value}" for n, m in admin_client.cookies.items())}
        with server.holding(NOT_READABLE):
            answer = ask.get("/admin/mailroom/mail/", headers=cookie)
            server.end_what_waits()
            page = answer.result(PATIENCE)
        assert page.status_code == 503
        assert "either saved whole or not at all" in page.text


@pytest.mark.parametrize("face", ["rest", "mcp"])
class TestALockThatIsNotGivenBack:
    """As an operator's, who forgot an open transaction (Spec: clocks 12)."""

    @pytest.fixture(autouse=True)
    def impatient(self, transactional_db):
        def wait_at_most(limit):
            with connection.cursor() as cursor:
                database = connection.settings_dict["NAME"]
                cursor.execute(f"ALTER DATABASE {database} SET lock_timeout = '{limit}'")
            connection.close()
            connection.close_pool()

        wait_at_most("1s")
        yield
        wait_at_most("0")

    @pytest.mark.parametrize("lock", [MAILS, KEYS])
    @pytest.mark.parametrize("headers", [{}, KEY])
    def test_refuses_the_call_after_one_wait(self, server, ask, face, lock, headers):
        with server.holding(lock):
            assert is_interrupted(envelope(ask("send_mail", face=face, headers=headers, **MAIL)))
        assert not Mail.objects.exists()
        assert envelope(ask("send_mail", face=face, headers=headers, **MAIL))["ok"]


class TestAServerThatOnlyReads:
    """A failover leaves pools with connections to a replica, which answers as ever."""

    @pytest.fixture
    def replica(self, server):
        """Every session only reads until it is connected again."""
        name = connection.settings_dict["NAME"]
        with server.connect(autocommit=True) as other:
            other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            connection.close()
            connection.close_pool()
            yield lambda: other.execute(
                f"SET default_transaction_read_only = off; "
                f"ALTER DATABASE {name} RESET default_transaction_read_only"
            )
            other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        connection.close()
        connection.close_pool()

    @pytest.mark.parametrize("face", ["rest", "mcp"])
    @pytest.mark.parametrize("headers", [{}, KEY])
    def test_is_told_and_left_at_once(self, ask, replica, face, headers):
        assert is_interrupted(envelope(ask("send_mail", face=face, headers=headers, **MAIL)))
        replica()
        assert envelope(ask("send_mail", face=face, headers=headers, **MAIL))["ok"]
        assert Mail.objects.count() == 1

    def test_is_left_by_a_job(self, nexus, replica):
        """Each gives its connection back, and the pool may have made one more to the replica."""

        def run():
            try:
                run_job("ledger seals")
            finally:
                give_back_connection()

        with pytest.raises(InternalError):
            run()
        replica()
        with suppress(InternalError):
            run()
        run()

    def test_is_not_ready(self, replica):
        assert health.database_problem() == "OperationalError"


class TestAStatementThatIsCancelled:
    """By its limit in time, or by an operator (`pg_cancel_backend`)."""

    @pytest.mark.parametrize("headers", [{}, KEY])
    def test_is_told(self, server, ask, headers):
        with server.holding(MAILS):
            answer = ask("send_mail", headers=headers, **MAIL)
            server.end_what_waits("SELECT pg_cancel_backend(%s)")
            assert is_interrupted(envelope(answer))
        assert not Mail.objects.exists()


@pytest.mark.parametrize("face", ["rest", "mcp"])
class TestAServerWithoutMemory:
    """By a limit of its own, or of a machine that promises no more than it has."""

    @pytest.fixture(autouse=True)
    def without_memory(self, nexus):
        with connection.cursor() as cursor:
            cursor.execute(NO_MEMORY)
        yield
        with connection.cursor() as cursor:
            cursor.execute(MEMORY_AGAIN)

    @pytest.mark.parametrize("headers", [{}, KEY])
    def test_is_told(self, ask, face, headers):
        assert is_interrupted(envelope(ask("send_mail", face=face, headers=headers, **MAIL)))
        assert not Mail.objects.exists()


@pytest.mark.usefixtures("commits_wait")
class TestAConnectionEndedAtTheCommit:
    def test_is_told_where_no_one_can_repeat_it(self, server, ask):
        with server.holding(COMMITS):
            answer = ask("send_mail", **MAIL)
            server.end_what_waits()
            assert is_interrupted(envelope(answer))

    def test_is_done_once_with_an_idempotency_key(self, server, ask):
        with server.holding(COMMITS) as give_back:
            answer = ask("send_mail", headers=KEY, **MAIL)
            server.end_what_waits()
            give_back()
            assert envelope(answer)["ok"]
        assert Mail.objects.count() == 1


class TestAConnectionEndedAfterTheCommit:
    """What was committed although its caller did not learn of it."""

    @pytest.fixture
    def commits_lost(self, monkeypatch):
        commit, left = DatabaseWrapper._commit, [1]

        def lose(self):
            is_the_call = left and (Mail.objects.exists() or Task.objects.exists())
            commit(self)
            if is_the_call:
                left.pop()
                with self.connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        def lost(self):
            with self.wrap_database_errors:
                lose(self)

        monkeypatch.setattr(DatabaseWrapper, "_commit", lost)
        return left

    def test_is_not_said_to_have_done_nothing(self, ask, commits_lost):
        assert is_interrupted(envelope(ask("task_create", subject="A thing to do")))
        assert not commits_lost
        assert Task.objects.count() == 1

    def test_is_answered_from_what_was_kept(self, ask, commits_lost):
        answer = ask("send_mail", headers=KEY, **MAIL)
        assert envelope(answer)["ok"]
        assert not commits_lost
        assert answer.result().headers["Idempotency-Replayed"] == "true"
        assert Mail.objects.count() == 1
