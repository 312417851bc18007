"""Settings as another process sees them, under one environment or another."""

import importlib
import json
import os
import socket
import ssl
import stat
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_letters, digits

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import ConnectionHandler
from psycopg.conninfo import make_conninfo, timeout_from_conninfo
from psycopg.pq import Conninfo, PGconn

from core import people
from nexus_site.databases import GIVE_UP, connection_as, database_from_url, pooled
from nexus_site.environment import (
    SHORTEST_SECRET,
    Environment,
    MailServer,
    kept_secret,
    mail_server_from_url,
)
from nexus_site.run import broker
from nexus_site.run.fork import fork, status_of

PRODUCTION = {
    "NEXUS_ENV": "production",
    "SECRET_KEY": "pQ3wZ8rT1vK6mB0xN5jH2gY7dL4sF9cAqW3eR8tU1iO6zX0cV5b",
    "ALLOWED_HOSTS": "nexus.example",
    "DATABASE_URL": "postgresql://nexus@database/nexus",
    "REDIS_URL": "redis://broker/0",
}


@dataclass
class Done:
    """How a process that read the settings ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def settings_of(tmp_path, *names, **environment):
    """The values of these settings in a process with nothing else in its environment."""
    said, problems = tmp_path / "said", tmp_path / "problems"

    def tell():
        os.environ.clear()
        os.environ |= {"PATH": os.defpath, "NEXUS_VAR": str(tmp_path / "var")} | environment
        del sys.modules["nexus_site.settings"]
        with problems.open("w") as file, redirect_stderr(file):
            try:
                settings = importlib.import_module("nexus_site.settings")
            except ImproperlyConfigured:
                traceback.print_exc()
                return 1
        said.write_text(json.dumps([getattr(settings, n, None) for n in names], default=str))
        return 0

    status = status_of(fork(tell), wait=True)
    return Done(status, said.read_text() if status == 0 else "", problems.read_text())


def read(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class TestTemporaryFiles:
    def test_have_a_folder_while_every_disk_is_full(self, tmp_path, monkeypatch):
        """Spec: clocks 11."""

        def is_full():
            raise FileNotFoundError("no usable temporary directory found")

        def find():
            os.environ |= {"TMPDIR": str(tmp_path), "NEXUS_VAR": str(tmp_path / "var")}
            del sys.modules["nexus_site.settings"]
            importlib.import_module("nexus_site.settings")
            return 0 if tempfile.gettempdir() == str(tmp_path) else 1

        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(tempfile, "_get_default_tempdir", is_full)
        assert status_of(fork(find), wait=True) == 0


class TestTheDefaultMode:
    @pytest.mark.parametrize("mode", ["coding", "root", ""])
    def test_can_be_no_other_than_chat_safe(self, tmp_path, mode):
        done = settings_of(tmp_path, "SESSION_DEFAULT_MODE", SESSION_DEFAULT_MODE=mode)
        if mode:
            assert done.returncode != 0
            assert "SESSION_DEFAULT_MODE must be 'chat_safe'" in done.stderr
        else:
            assert read(done) == ["chat_safe"]


class TestDevelopment:
    def test_keeps_a_secret_of_its_own_that_only_the_owner_reads(self, tmp_path):
        (first,) = read(settings_of(tmp_path, "SECRET_KEY"))
        (again,) = read(settings_of(tmp_path, "SECRET_KEY"))
        assert first == again
        assert len(first) > 60
        mode = (tmp_path / "var" / "secret_key").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600

    def test_shows_no_debug_pages_and_serves_this_machine_only(self, tmp_path):
        debug, host, hosts = read(settings_of(tmp_path, "DEBUG", "HOST", "ALLOWED_HOSTS"))
        assert (debug, host) == (False, "127.0.0.1")
        assert "*" not in hosts

    def test_is_what_an_absent_variable_means(self, tmp_path):
        assert read(settings_of(tmp_path, "PRODUCTION")) == [False]
        assert read(settings_of(tmp_path, "PRODUCTION", NEXUS_ENV="development")) == [False]

    def test_starts_no_database_by_being_read(self, tmp_path):
        read(settings_of(tmp_path, "DATABASES"))
        assert not (tmp_path / "var" / "postgres").exists()

    def test_gives_every_thread_a_connection(self, tmp_path):
        databases, threads = read(
            settings_of(tmp_path, "DATABASES", "WEB_THREADS", WEB_THREADS="40")
        )
        assert databases["default"]["OPTIONS"]["pool"]["max_size"] >= threads == 40
        assert databases["default"]["CONN_MAX_AGE"] == 0


class TestProduction:
    @pytest.mark.parametrize("missing", ["SECRET_KEY", "ALLOWED_HOSTS"])
    def test_refuses_to_start_without(self, tmp_path, missing):
        environment = {name: value for name, value in PRODUCTION.items() if name != missing}
        done = settings_of(tmp_path, "DEBUG", **environment)
        assert done.returncode != 0
        assert f"{missing} is not set" in done.stderr

    @pytest.mark.parametrize(
        ("name", "value", "why"),
        [
            ("SECRET_KEY", "k" * 49, "SECRET_KEY has 49 characters"),
            ("SECRET_KEY", "abcdefghi" * 9, "SECRET_KEY is not random"),
            ("SECRET_KEY", "django-insecure-" + "0123456789" * 5, "SECRET_KEY is not random"),
            ("SECRET_KEY", "abcdefghijklmnopqrst" * 3, "SECRET_KEY is not random"),
            ("SECRET_KEY", "correct horse battery staple " * 2, "SECRET_KEY is not random"),
            ("SECRET_KEY", ascii_letters + digits, "SECRET_KEY is not random"),
            ("ALLOWED_HOSTS", "*", "ALLOWED_HOSTS must name the hosts"),
            ("ALLOWED_HOSTS", "nexus.example, *", "ALLOWED_HOSTS must name the hosts"),
            ("ALLOWED_HOSTS", "nexus.example,.", "ALLOWED_HOSTS must name the hosts"),
            ("ALLOWED_HOSTS", " , ", "ALLOWED_HOSTS must name the hosts"),
            ("ALLOWED_HOSTS", "nexus.example,.com", "ALLOWED_HOSTS must name the hosts"),
            ("LOG_LEVEL", "loud", "LOG_LEVEL must be INFO or DEBUG"),
            ("DEBUG", "yes", "DEBUG must be off"),
            ("TRUSTED_PROXIES", "10.0.0.1,0.0.0.0/0", "TRUSTED_PROXIES=0.0.0.0/0 believes"),
            ("TRUSTED_PROXIES", "::/0", "TRUSTED_PROXIES=::/0 believes"),
            ("TRUSTED_PROXIES", "2000::/7", "TRUSTED_PROXIES=2000::/7 believes"),
            ("TRUSTED_PROXIES", "0.0.0.0/1,128.0.0.0/1", "TRUSTED_PROXIES=0.0.0.0/1 believes"),
            ("TRUSTED_PROXIES", "8.0.0.0/8", "TRUSTED_PROXIES=8.0.0.0/8 believes"),
            ("METRICS_TOKEN", "x" * 15, "METRICS_TOKEN can be guessed"),
            *(
                ("CSRF_TRUSTED_ORIGINS", f"https://nexus.example,{origin}", f"={origin} believes")
                for origin in (
                    "https://*.com",
                    "https://*",
                    "https://**.com",
                    "https://*.com/x.y",
                    "https://*.com:443",
                    "http://nexus.example",
                    "nexus.example",
                )
            ),
            ("PORT", "0", "PORT"),
            ("SECURE_SSL_REDIRECT", "no", "SECURE_SSL_REDIRECT must be on in production"),
        ],
    )
    def test_refuses_to_start_with_what_is_never_safe(self, tmp_path, name, value, why):
        done = settings_of(tmp_path, "DEBUG", **PRODUCTION | {name: value})
        assert done.returncode != 0
        assert why in done.stderr

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SECRET_KEY", "".join(Random(7).choices(digits, k=50))),
            ("SECRET_KEY", Random(7).randbytes(25).hex()),
            ("TRUSTED_PROXIES", "10.0.0.0/8,172.16.0.0/12,fd00::/8,fc00::/7,fe80::/10"),
            ("METRICS_TOKEN", Random(7).randbytes(8).hex()),
            ("TRUSTED_PROXIES", "104.16.0.0/13,2a06:98c0::/29"),  # a provider's
            ("CSRF_TRUSTED_ORIGINS", "https://nexus.example:8443,https://*.nexus.example"),
        ],
    )
    def test_starts_with_what_honest_operators_set(self, tmp_path, name, value):
        assert read(settings_of(tmp_path, "DEBUG", **PRODUCTION | {name: value})) == [False]

    @pytest.mark.parametrize(
        "value", ["prod", "Production", "PRODUCTION", "production ", "test", ""]
    )
    def test_has_one_spelling(self, tmp_path, value):
        done = settings_of(tmp_path, "DEBUG", **PRODUCTION | {"NEXUS_ENV": value})
        assert done.returncode != 0
        assert f"NEXUS_ENV must be development or production (got {value!r})" in done.stderr

    def test_writes_no_secret_to_disk(self, tmp_path):
        (secret,) = read(settings_of(tmp_path, "SECRET_KEY", **PRODUCTION))
        assert secret == PRODUCTION["SECRET_KEY"]
        assert not (tmp_path / "var" / "secret_key").exists()

    def test_sends_cookies_over_https_only(self, tmp_path):
        names = ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "DEBUG"]
        assert read(settings_of(tmp_path, *names, **PRODUCTION)) == [True, True, True, False]

    def test_takes_no_cookie_that_another_host_made(self, tmp_path):
        """Spec: people 70."""
        names = ["SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME"]
        assert read(settings_of(tmp_path, *names)) == ["nexus_session", "nexus_csrf"]
        named = read(settings_of(tmp_path, *names, **PRODUCTION))
        assert named == ["__Host-nexus_session", "__Host-nexus_csrf"]

    def test_believes_a_proxy_only_when_told_to(self, tmp_path):
        name = "TRUSTED_PROXIES"
        assert read(settings_of(tmp_path, name, **PRODUCTION)) == [[]]
        trusting = PRODUCTION | {name: "10.0.0.1, 192.168.0.0/16"}
        assert read(settings_of(tmp_path, name, **trusting)) == [["10.0.0.1/32", "192.168.0.0/16"]]

    def test_refuses_a_proxy_that_is_no_address(self, tmp_path):
        done = settings_of(tmp_path, "TRUSTED_PROXIES", **PRODUCTION, TRUSTED_PROXIES="all")
        assert done.returncode != 0
        assert "TRUSTED_PROXIES: 'all'" in done.stderr

    def test_names_the_servers_it_was_given(self, tmp_path):
        databases, broker = read(
            settings_of(tmp_path, "DATABASES", "CELERY_BROKER_URL", **PRODUCTION)
        )
        assert databases["default"]["HOST"] == "database"
        assert databases["default"]["ENGINE"] == "nexus_site.run.database"
        assert broker == "redis://broker/0"


class TestTheBroker:
    @pytest.mark.parametrize(
        ("url", "verified"), [("rediss://broker/0", True), ("redis://broker/0", False)]
    )
    def test_shows_its_certificate_where_it_encrypts(self, tmp_path, url, verified):
        environment = PRODUCTION | {"REDIS_URL": url}
        (encryption,) = read(settings_of(tmp_path, "CELERY_BROKER_USE_SSL", **environment))
        assert encryption == ({"ssl_cert_reqs": ssl.CERT_REQUIRED} if verified else {})

    def test_is_no_other_server(self):
        with pytest.raises(ImproperlyConfigured, match="must begin with redis://"):
            broker.encryption("amqp://broker")


class TestEnvironment:
    @pytest.mark.parametrize(
        ("word", "meaning"),
        [("1", True), ("true", True), ("YES", True), ("off", False), ("0", False), ("no", False)],
    )
    def test_reads_a_flag(self, word, meaning):
        assert Environment({"FLAG": word}).flag("FLAG", default=not meaning) is meaning

    def test_refuses_a_flag_it_does_not_understand(self):
        with pytest.raises(ImproperlyConfigured, match="neither yes nor no"):
            Environment({"FLAG": "maybe"}).flag("FLAG", default=True)

    @pytest.mark.parametrize("word", ["many", "1.5", "0", "-3"])
    def test_refuses_a_number_that_is_none_or_too_small(self, word):
        with pytest.raises(ImproperlyConfigured, match="NUMBER"):
            Environment({"NUMBER": word}).number("NUMBER", 4, least=1)

    @pytest.mark.parametrize(
        ("value", "site"),
        [
            ("", "http://here:8000"),
            ("https://nexus.example/", "https://nexus.example"),
            ("https://nexus.example:9000/of/ours", "https://nexus.example:9000/of/ours"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ],
    )
    def test_reads_the_address_of_a_site(self, value, site):
        assert Environment({"S": value}).site("S", "http://here:8000") == site

    @pytest.mark.parametrize(
        "value",
        ["nexus.example", "javascript:x", "https://", "https:///x", "https://a\r\nb", "https://u@x",
         "https://x/?a=b", "https://x\n"],
    )  # fmt: skip
    def test_refuses_an_address_of_which_no_link_is_made(self, value):
        with pytest.raises(ImproperlyConfigured, match="S must be https"):
            Environment({"S": value}).site("S", "")

    def test_takes_an_empty_variable_for_absent(self):
        environment = Environment({"HERE": ""})
        assert environment.text("HERE", "default") == "default"
        assert environment.number("HERE", 7) == 7
        assert environment.items("HERE", "a, b,,c") == ["a", "b", "c"]


class TestDatabaseFromUrl:
    def test_reads_every_part(self):
        database = database_from_url("postgresql://me:p%40ss@host:6432/na%2Fme?sslmode=require")
        assert database == {
            "ENGINE": "nexus_site.run.database",
            "NAME": "na/me",
            "USER": "me",
            "PASSWORD": "p@ss",
            "HOST": "host",
            "PORT": "6432",
            "OPTIONS": GIVE_UP | {"sslmode": "require"},
        }

    def test_gives_up_a_machine_that_is_gone(self, settings):
        """As the kernel is told: a connection that nothing closed would hold its thread else."""
        with socket.create_server(("127.0.0.1", 0)) as gone:
            address = f"postgresql://me@127.0.0.1:{gone.getsockname()[1]}/nexus"
            settings.DATABASE_URL = address
            database = pooled(database_from_url(address), connections=2, prepared=True)
            parameters = ConnectionHandler({"default": database})["default"].get_connection_params()
            known = {option.keyword.decode() for option in Conninfo.get_defaults()}
            libpq = {name: value for name, value in parameters.items() if name in known}
            begun = PGconn.connect_start(make_conninfo(**libpq).encode())
            with socket.socket(fileno=os.dup(begun.socket)) as told:
                assert told.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
                assert told.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
                assert told.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 5
                assert told.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
            begun.finish()
            assert timeout_from_conninfo(libpq) == 10

    def test_lets_the_operator_decide_when_to_give_up(self):
        database = database_from_url("postgresql://me@host/nexus?tcp_user_timeout=90000")
        assert database["OPTIONS"] == GIVE_UP | {"tcp_user_timeout": "90000"}

    def test_takes_a_socket_folder_as_host(self):
        database = database_from_url("postgresql:///nexus?host=/run/postgresql&user=me")
        assert (database["HOST"], database["NAME"]) == ("/run/postgresql", "nexus")
        assert database["OPTIONS"] == GIVE_UP

    def test_takes_user_and_password_as_options(self):
        """Else the owner's address would give no user, and the role that serves would migrate."""
        found = connection_as("postgresql:///nexus?host=a,b&port=1,2&user=me&password=p%26s")
        assert (found["USER"], found["PASSWORD"]) == ("me", "p&s")
        assert (found["HOST"], found["PORT"]) == ("a,b", "1,2")

    @pytest.mark.parametrize("url", ["sqlite:///db", "mysql://h/d", "nexus"])
    def test_refuses_any_other_database(self, url):
        with pytest.raises(ImproperlyConfigured, match="postgresql://"):
            database_from_url(url)

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("postgresql://h", "names no database"),
            ("postgresql://u@h:port/db", "DATABASE_URL: Port"),
        ],
    )
    def test_says_what_is_wrong_with_an_address(self, url, problem):
        with pytest.raises(ImproperlyConfigured, match=problem):
            database_from_url(url)


class TestMail:
    NAMES = ("EMAIL_BACKEND", "EMAIL_HOST", "EMAIL_PORT", "EMAIL_USE_TLS", "EMAIL_USE_SSL")

    def test_without_a_server_lies_in_files_in_development_only(self, tmp_path):
        backend, folder = read(settings_of(tmp_path, "EMAIL_BACKEND", "EMAIL_FILE_PATH"))
        assert backend.endswith("filebased.EmailBackend")
        assert folder == str(tmp_path / "var" / "mail")
        (backend,) = read(settings_of(tmp_path, "EMAIL_BACKEND", **PRODUCTION))
        assert backend.endswith("smtp.EmailBackend")

    def test_goes_to_the_server_it_was_given(self, tmp_path):
        url = {"EMAIL_URL": "smtp+starttls://me:p%40ss@mail.example"}
        found = read(settings_of(tmp_path, *self.NAMES, "EMAIL_HOST_PASSWORD", **url))
        assert found[0].endswith("smtp.EmailBackend")
        assert found[1:] == ["mail.example", 587, True, False, "p@ss"]

    @pytest.mark.parametrize(
        ("url", "port", "encrypted"),
        [("smtp://h", 25, ""), ("smtps://h", 465, "tls"), ("smtp+starttls://h:25", 25, "starttls")],
    )
    def test_names_the_port_by_the_way_it_is_encrypted(self, url, port, encrypted):
        assert mail_server_from_url(url) == MailServer("h", port, "", "", encrypted)

    @pytest.mark.parametrize(
        "url",
        ["http://h", "smtp:", "smtp:///x", "h:25", "smtp://h:x", "smtp://h:99999", "smtp://[h"],
    )
    def test_refuses_what_names_no_mail_server(self, url):
        with pytest.raises(ImproperlyConfigured, match="EMAIL_URL"):
            mail_server_from_url(url)


class TestKeptSecret:
    def test_is_one_for_all_who_ask_at_once(self, tmp_path):
        with ThreadPoolExecutor(16) as many:
            secrets = set(many.map(lambda _: kept_secret(tmp_path / "secret"), range(64)))
        assert len(secrets) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["secret"]

    def test_that_a_machine_lost_is_made_again(self, tmp_path):
        """Who starts with an empty one serves no page to people."""
        file = tmp_path / "secret"
        file.touch()
        made = kept_secret(file)
        assert len(made) > SHORTEST_SECRET
        assert kept_secret(file) == made


class TestAUserWithoutAName:
    """As containers are often run by: the system knows neither its name nor its home."""

    @pytest.fixture(autouse=True)
    def nameless(self, monkeypatch):
        def unknown(uid):
            raise KeyError(uid)

        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", unknown)
        for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
            monkeypatch.delenv(name, raising=False)

    def test_has_the_skills_that_are_not_in_its_home(self):
        found = Environment({}).folders("NEXUS_SKILL_FOLDERS", "/srv/skills, ~/.claude/skills")
        assert found == [Path("/srv/skills")]

    def test_is_told_that_it_has_no_home(self):
        with pytest.raises(ImproperlyConfigured, match=r"NEXUS_VAR: .* has no home"):
            Environment({"NEXUS_VAR": "~/nexus"}).path("NEXUS_VAR", Path("/srv"))

    def test_is_the_operator(self):
        assert people.system_user() == "operator"
        assert people.operator().username == "operator"
