"""The role that serves can do its work, and cannot undo what the database guards."""

import base64
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from ledger import services, sql
from ledger.composing import SHAPE
from nexus_site.asgi import Site
from nexus_site.run import cluster_lock, roles, safety, worker
from nexus_site.run.fork import fork, status_of
from nexus_site.run.postgres import Cluster
from tests.ledger.world import make_event
from tests.patience import wait_until

KEY = base64.b64encode(bytes(range(32))).decode()


async def start(site):
    """What a site answers to the server's start."""
    answers = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        answers.append(message)

    await site({"type": "lifespan"}, receive, send)
    return answers


@pytest.fixture
def serving(transactional_db, settings):
    """A connection as the serving role."""
    settings.DATABASE_URL = ""
    roles.grant_serving()
    roles.grant_serving()  # as often as there is a start
    given = connection.get_connection_params()
    where = {name: given[name] for name in ("dbname", "host", "port") if given.get(name)}
    with psycopg.connect(**where, user=roles.EMBEDDED, autocommit=True) as found:
        yield found


@pytest.fixture
def elsewhere(transactional_db, settings, monkeypatch):
    """A server with two plain roles, as deploy/postgres-roles.sh makes them; reached as each."""
    given = connection.get_connection_params()
    where = {name: given[name] for name in ("host", "port") if given.get(name)}
    settings.DATABASE_URL = settings.DATABASE_OWNER_URL = "postgresql://elsewhere"
    settings.SERVING_ROLE = "plain_serving"
    with psycopg.connect(**where, user=given["user"], dbname="postgres", autocommit=True) as root:
        for role in ("plain_owner", "plain_serving"):
            root.execute(f"CREATE ROLE {role} LOGIN")
        root.execute("CREATE DATABASE plain OWNER plain_owner")
        with psycopg.connect(**where, user="plain_owner", dbname="plain", autocommit=True) as owner:
            owner.execute("CREATE TABLE django_migrations (id int)")
            owner.execute(f"CREATE TABLE ledger_event ({', '.join(f'{n} int' for n in SHAPE)})")
            monkeypatch.setattr(
                roles,
                "connection",
                SimpleNamespace(cursor=owner.cursor, settings_dict={"NAME": "plain"}),
            )
            yield lambda role: psycopg.connect(**where, user=role, dbname="plain", autocommit=True)
        root.execute("DROP DATABASE plain WITH (FORCE)")
        root.execute("DROP ROLE plain_owner, plain_serving")


def settings_of_database(role):
    """What each session of this database begins with, by names."""
    kept = "SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setrole = 0"
    return dict(row[0].split("=") for row in role.execute(kept))


class TestAServerElsewhere:
    def test_is_prepared_by_an_owner_that_creates_no_roles(self, elsewhere, monkeypatch):
        roles.grant_serving()
        roles.grant_serving()
        assert roles.is_unsafe()
        with elsewhere("plain_serving") as serving:
            monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
            assert not roles.is_unsafe()
            (limit,) = serving.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert limit == "1min"


class TestAServingProcess:
    def test_leaves_the_start_of_the_database_to_its_keeper(self, tmp_path, settings, monkeypatch):
        """Else its first calls, one after the other, would wait for a server that is down."""
        settings.DATABASE_URL, settings.NEXUS_VAR = "", tmp_path
        monkeypatch.setattr(Cluster, "start", lambda cluster: pytest.fail("it starts it"))
        monkeypatch.setattr(roles, "_connect_as", lambda changes: None)

        def work():
            return 0 if not cluster_lock.take(Cluster.under(tmp_path)).file.closed else 1

        assert status_of(fork(roles.serve(work)), wait=True) == 0


class TestServing:
    @pytest.mark.parametrize(
        "attempt",
        [
            "ALTER TABLE ledger_event DISABLE TRIGGER USER",
            "ALTER TABLE ledger_event DISABLE TRIGGER ALL",
            "DROP TRIGGER ledger_event_only_grows ON ledger_event",
            (
                "CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger "
                "LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            ),
            "CREATE RULE swallow AS ON INSERT TO ledger_event DO INSTEAD NOTHING",
            "TRUNCATE ledger_event",
            "TRUNCATE ledger_seal",
            "TRUNCATE orgchart_organisation CASCADE",
            "DELETE FROM ledger_event",
            "DELETE FROM ledger_seal",
            *(
                f"INSERT INTO ledger_event (id, at, actor, action, decision, digest, {place}) "
                "VALUES (gen_random_uuid(), now(), 'x', 'x', 'allow', sha256(''), 9)"
                for place in ("seq", "xid", "era")
            ),
            "UPDATE ledger_event SET actor = 'x'",
            "UPDATE ledger_seal SET number = 9",
            "DELETE FROM mailroom_mailrejection",
            "DELETE FROM mailroom_mail",
            "UPDATE governance_artifact SET id = id",
            "DROP TABLE ledger_event",
            "SET session_replication_role = replica",
            "CREATE TABLE public.mine (a int)",
            "CREATE TEMPORARY TABLE contracts_verdict (id int)",  # which a trigger would ask
            "CREATE ROLE other SUPERUSER",
            "SET ROLE nexus",
            "DELETE FROM django_migrations",
            "COPY ledger_seal TO PROGRAM 'cat'",
        ],
    )
    def test_may_not(self, serving, attempt):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            serving.execute(attempt)

    def test_may_write_events_and_read_what_sealing_needs(self, serving):
        serving.execute(services.INSERT, sql.params(make_event()))
        serving.execute("SELECT system_identifier FROM pg_control_system()")
        serving.execute("SELECT pg_walfile_name(pg_current_wal_lsn())")
        serving.execute("UPDATE orgchart_agent SET active = active")

    def test_may_not_idle_in_a_transaction(self, serving):
        (limit,) = serving.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert limit == "1min"

    def test_may_not_wait_for_a_lock_without_end(self, serving):
        (limit,) = serving.execute("SHOW lock_timeout").fetchone()
        assert limit == "20s"

    def test_keeps_no_lock_after_it_was_killed(self, serving):
        """A large import may be one statement of minutes. Spec: clocks 12."""
        given = {name: getattr(serving.info, name) for name in ("host", "port", "user", "dbname")}

        def ask():
            with psycopg.connect(**given) as asking:
                asking.execute("SELECT pg_sleep(200)")

        child = fork(ask)
        sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        wait_until(lambda: serving.execute(sleeping).rowcount)
        os.kill(child, signal.SIGKILL)
        status_of(child, wait=True)
        wait_until(lambda: not serving.execute(sleeping).rowcount)

    def test_keeps_no_lock_for_hours_after_its_machine_is_gone(self, serving):
        """Nothing closes its connections then; the kernel would ask after two hours first."""
        limits = settings_of_database(serving)
        assert limits["tcp_keepalives_idle"] == "20s"
        assert limits["tcp_keepalives_interval"] == "5s"
        assert limits["tcp_keepalives_count"] == "4"
        assert limits["tcp_user_timeout"] == "40s"

    def test_goes_on_with_a_row_that_it_waited_for(self, serving):
        """Where the server begins transactions as serializable, it would be refused."""
        assert settings_of_database(serving)["default_transaction_isolation"] == "read committed"

    @pytest.mark.parametrize("where", ["", "IN DATABASE {}"])
    def test_loses_the_limits_that_it_set_itself(self, serving, where):
        there = where.format(connection.settings_dict["NAME"])
        serving.execute(f"ALTER ROLE CURRENT_USER {there} SET lock_timeout = 0")
        roles.grant_serving()
        with connection.cursor() as owner:
            owner.execute("SELECT count(*) FROM pg_db_role_setting WHERE setrole <> 0")
            assert owner.fetchone() == (0,)

    @pytest.mark.parametrize(
        ("give", "take"),
        [
            ("SELECT lo_create(4711)", "SELECT lo_unlink(4711)"),
            (
                "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
                "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC",
            ),
        ],
    )
    def test_serves_whatever_it_may_own(self, serving, monkeypatch, give, take):
        """Else who can execute one statement would stop every later start."""
        monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
        serving.execute(give)
        try:
            assert not roles.is_unsafe()
        finally:
            serving.execute(take)

    @pytest.mark.parametrize("time", ["infinity", "0044-03-15 BC"])
    @pytest.mark.parametrize("table", ["ledger_event", "ledger_seal"])
    def test_may_not_write_for_ever_what_no_page_can_show(self, serving, table, time):
        columns = {
            "ledger_event": "(id, actor, action, decision, digest, at) VALUES "
            "(gen_random_uuid(), 'x', 'x', 'allow', sha256(''), %s)",
            "ledger_seal": "(number, era, lo, hi, count, root, marks, previous, key_id, digest, "
            "signature, at) VALUES (1, 1, 1, 2, 1, '', '', '', '', '', '', %s)",
        }
        with pytest.raises(psycopg.errors.CheckViolation):
            serving.execute(f"INSERT INTO {table} {columns[table]}", [time])

    def test_is_told_from_one_that_owns(self, serving, monkeypatch):
        assert roles.is_unsafe()
        cursor = SimpleNamespace(cursor=serving.cursor)
        monkeypatch.setattr(roles, "connection", cursor)
        assert not roles.is_unsafe()

    @pytest.mark.parametrize(
        ("give", "take"),
        [
            ("ALTER ROLE {0} SUPERUSER", "ALTER ROLE {0} NOSUPERUSER"),
            ("ALTER ROLE {0} CREATEROLE", "ALTER ROLE {0} NOCREATEROLE"),
            ("ALTER ROLE {0} REPLICATION", "ALTER ROLE {0} NOREPLICATION"),
            ("GRANT pg_execute_server_program TO {0}", "REVOKE pg_execute_server_program FROM {0}"),
            ("GRANT pg_read_server_files TO {0}", "REVOKE pg_read_server_files FROM {0}"),
            ("GRANT pg_write_server_files TO {0}", "REVOKE pg_write_server_files FROM {0}"),
            (
                "GRANT SET ON PARAMETER session_replication_role TO {0}",
                "REVOKE SET ON PARAMETER session_replication_role FROM {0}",
            ),
            ("GRANT CREATE ON SCHEMA public TO {0}", "REVOKE CREATE ON SCHEMA public FROM {0}"),
            (
                "CREATE SCHEMA of_others; GRANT CREATE ON SCHEMA of_others TO {0}",
                "DROP SCHEMA of_others",
            ),
            ("CREATE SCHEMA {0} AUTHORIZATION {0}", "DROP SCHEMA {0}"),
            ("GRANT CREATE ON DATABASE {1} TO {0}", "REVOKE CREATE ON DATABASE {1} FROM {0}"),
            ("GRANT TEMPORARY ON DATABASE {1} TO {0}", "REVOKE TEMPORARY ON DATABASE {1} FROM {0}"),
            (
                "ALTER TABLE contracts_verdict OWNER TO {0}",
                "ALTER TABLE contracts_verdict OWNER TO {2}",
            ),
            (
                "ALTER FUNCTION ledger_refuse_change OWNER TO {0}",
                "ALTER FUNCTION ledger_refuse_change OWNER TO {2}",
            ),
            (
                "ALTER SCHEMA public OWNER TO {0}; REVOKE CREATE ON SCHEMA public FROM {0}",
                "ALTER SCHEMA public OWNER TO {2}; GRANT CREATE ON SCHEMA public TO {2}",
            ),
            (
                "ALTER DATABASE {1} OWNER TO {0}; REVOKE ALL ON DATABASE {1} FROM {0}",
                "ALTER DATABASE {1} OWNER TO {2}; GRANT ALL ON DATABASE {1} TO {2}",
            ),
            ("GRANT {2} TO {0} WITH INHERIT FALSE", "REVOKE {2} FROM {0}"),  # SET ROLE takes it
            (
                "CREATE ROLE {0}_admin CREATEROLE; GRANT {0}_admin TO {0}",  # so does this
                "DROP ROLE {0}_admin",
            ),
            ("GRANT pg_write_all_data TO {0}", "REVOKE pg_write_all_data FROM {0}"),
            (
                (
                    "CREATE ROLE {0}_group; GRANT TRIGGER ON contracts_verdict TO {0}_group; "
                    "GRANT {0}_group TO {0}"
                ),
                "DROP OWNED BY {0}_group; DROP ROLE {0}_group",
            ),
            (
                (
                    "CREATE ROLE {0}_group; GRANT INSERT ON ledger_event TO {0}_group; "
                    "GRANT {0}_group TO {0}"
                ),
                "DROP OWNED BY {0}_group; DROP ROLE {0}_group",
            ),
        ],
    )
    def test_that_could_undo_the_guards_does_not_serve(self, serving, monkeypatch, give, take):
        given = connection.settings_dict
        names = (roles.EMBEDDED, given["NAME"], given["USER"])
        monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
        with connection.cursor() as owner:
            try:
                for statement in give.format(*names).split(";"):
                    owner.execute(statement)
                assert roles.is_unsafe()
            finally:
                for statement in take.format(*names).split(";"):
                    owner.execute(statement)
        assert not roles.is_unsafe()

    def test_that_took_another_role_for_a_while_does_not_serve(self, serving, monkeypatch):
        with connection.cursor() as owner:
            owner.execute(f"SET ROLE {roles.EMBEDDED}")
            try:
                assert roles.is_unsafe()  # RESET ROLE makes it the owner again
            finally:
                owner.execute("RESET ROLE")

    def test_loses_what_was_granted_too_widely(self, serving):
        with connection.cursor() as owner:
            owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {roles.EMBEDDED}, PUBLIC")
        roles.grant_serving()
        with connection.cursor() as owner:
            owner.execute("CREATE ROLE stranger")
            owner.execute("SELECT has_table_privilege('stranger', 'mailroom_mail', 'SELECT')")
            (reads,) = owner.fetchone()
            owner.execute("DROP ROLE stranger")
        assert not reads
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            serving.execute(
                "CREATE TRIGGER silent BEFORE INSERT ON mailroom_mail FOR EACH ROW "
                "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            serving.execute("TRUNCATE tasks_task CASCADE")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            serving.execute("DELETE FROM ledger_event")

    def test_that_owns_does_not_serve_in_production(self, serving, settings, monkeypatch):
        assert safety.problem_of_start() == ""
        settings.PRODUCTION, settings.LEDGER_SIGNING_KEY = True, KEY
        assert "owns the tables" in safety.problem_of_start()
        with pytest.raises(SystemExit, match="owns the tables"):
            worker.work()
        answers = async_to_sync(start)(Site(ThreadPoolExecutor(1), faces={}))
        assert [each["type"] for each in answers] == ["lifespan.startup.failed"]
        monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
        assert safety.problem_of_start() == ""

    def test_does_not_serve_without_the_files_of_the_pages(
        self, serving, settings, monkeypatch, tmp_path
    ):
        monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
        storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
        settings.PRODUCTION, settings.LEDGER_SIGNING_KEY = True, KEY
        settings.STATIC_ROOT = tmp_path
        settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
        (answer,) = async_to_sync(start)(Site(ThreadPoolExecutor(1), faces={}))
        assert answer["type"] == "lifespan.startup.failed"
        assert "run `manage.py collectstatic`" in answer["message"]

    def test_is_the_one_of_the_url_where_an_owner_is_named(self, settings):
        settings.DATABASE_URL, settings.DATABASE_OWNER_URL = "postgresql://a@b/c", ""
        assert roles.serving_role() == ""
        settings.DATABASE_OWNER_URL, settings.SERVING_ROLE = "postgresql://o@b/c", "a"
        assert roles.serving_role() == "a"
