"""The role that serves can do its work, and cannot undo what the database guards."""

import base64
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from ledger import services, sql
from nexus_site.asgi import Site
from nexus_site.run import roles, safety, worker
from tests.ledger.world import make_event

KEY = base64.b64encode(b"k" * 32).decode()


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

    def test_is_told_from_one_that_owns(self, serving, monkeypatch):
        assert roles.is_unsafe()
        cursor = SimpleNamespace(cursor=serving.cursor)
        monkeypatch.setattr(roles, "connection", cursor)
        assert not roles.is_unsafe()

    @pytest.mark.parametrize(
        ("give", "take"),
        [
            ("ALTER ROLE {0} REPLICATION", "ALTER ROLE {0} NOREPLICATION"),
            ("GRANT pg_execute_server_program TO {0}", "REVOKE pg_execute_server_program FROM {0}"),
            ("GRANT pg_write_server_files TO {0}", "REVOKE pg_write_server_files FROM {0}"),
            ("GRANT CREATE ON SCHEMA public TO {0}", "REVOKE CREATE ON SCHEMA public FROM {0}"),
            ("GRANT CREATE ON DATABASE {1} TO {0}", "REVOKE CREATE ON DATABASE {1} FROM {0}"),
            ("GRANT TEMPORARY ON DATABASE {1} TO {0}", "REVOKE TEMPORARY ON DATABASE {1} FROM {0}"),
            ("ALTER SCHEMA public OWNER TO {0}", "ALTER SCHEMA public OWNER TO {2}"),
            ("ALTER DATABASE {1} OWNER TO {0}", "ALTER DATABASE {1} OWNER TO {2}"),
        ],
    )
    def test_that_could_undo_the_guards_does_not_serve(self, serving, monkeypatch, give, take):
        given = connection.settings_dict
        names = (roles.EMBEDDED, given["NAME"], given["USER"])
        monkeypatch.setattr(roles, "connection", SimpleNamespace(cursor=serving.cursor))
        with connection.cursor() as owner:
            owner.execute(give.format(*names))
            try:
                assert roles.is_unsafe()
            finally:
                owner.execute(take.format(*names))
        assert not roles.is_unsafe()

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
