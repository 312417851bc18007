"""Calls that store are refused while the disk is full; reading works."""

import errno
import os
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from psycopg.errors import DiskFull
from structlog.testing import capture_logs

from ledger.models import Event
from tests.company import load_company
from tests.decisions import denied
from tests.disks import MEGABYTE, full
from tests.disks import disk as disk_under
from toolbox import gate, space

pytestmark = pytest.mark.django_db


@pytest.fixture
def company():
    return load_company("nexus")


def disk(monkeypatch, free, **names):
    found = SimpleNamespace(f_bavail=free, f_frsize=1, **{"f_files": 0, "f_favail": 0} | names)
    monkeypatch.setattr(space.os, "statvfs", lambda path: found)


MAIL = {"to": "it_manager", "type": "question", "subject": "s", "body": "b"}


class TestAFullDisk:
    def test_refuses_what_stores_and_answers_what_reads(self, company, monkeypatch, settings):
        settings.DATABASE_URL = ""
        company.key("backend_worker")
        disk(monkeypatch, settings.NEXUS_DISK_RESERVE - 1)
        before = Event.objects.count()
        for headers in ({}, {"Idempotency-Key": "one"}):
            answer = company.call("backend_worker", "send_mail", headers=headers, **MAIL)
            assert (answer.status, answer.code) == (507, "STORAGE_FULL")
            assert answer.body["next_action"]
        asked = {"tool": "send_mail", "params": MAIL}
        explained = company.post("/api/v1/explain", asked, "backend_worker").body
        assert explained["error_code"] == "STORAGE_FULL"
        assert Event.objects.count() == before
        assert company.call("backend_worker", "task_list").status == 200
        disk(monkeypatch, settings.NEXUS_DISK_RESERVE)
        answer = company.call(
            "backend_worker", "send_mail", headers={"Idempotency-Key": "one"}, **MAIL
        )
        assert answer.status == 200

    @pytest.mark.parametrize(
        ("files", "left", "refuses"), [(9000, 999, True), (9000, 1000, False), (0, 0, False)]
    )
    def test_is_one_with_few_names_of_files_left(self, monkeypatch, settings, files, left, refuses):
        """Without a name PostgreSQL begins no file of its log: it ends, and starts no more."""
        settings.DATABASE_URL = ""
        disk(monkeypatch, settings.NEXUS_DISK_RESERVE, f_files=files, f_favail=left)
        with denied("STORAGE_FULL") if refuses else nullcontext():
            space.require_space()

    def test_is_named_in_the_log_for_who_makes_room(self, company, monkeypatch, settings):
        settings.DATABASE_URL = ""
        company.key("backend_worker")
        disk(monkeypatch, 0)
        with capture_logs() as logs:
            company.call("backend_worker", "send_mail", **MAIL)
        (line,) = [each for each in logs if each["event"] == "storage_full"]
        assert str(settings.NEXUS_VAR / "postgres") in line["which"]

        def fails(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")

        disk(monkeypatch, settings.NEXUS_DISK_RESERVE)
        monkeypatch.setattr(gate, "validate", fails)
        with capture_logs() as logs:
            company.call("backend_worker", "send_mail", **MAIL)
        (line,) = [each for each in logs if each["event"] == "storage_full"]
        assert "/tmp/x" in line["which"]

    def test_is_told_by_a_server_elsewhere(self, company, monkeypatch):
        company.key("backend_worker")

        def fails(*_, **__):
            raise OperationalError("could not extend file") from DiskFull

        monkeypatch.setattr(gate, "validate", fails)
        answer = company.call("backend_worker", "send_mail", **MAIL)
        assert (answer.status, answer.code) == (507, "STORAGE_FULL")

    @pytest.mark.parametrize(
        "number", sorted(space.NO_ROOM | space.NO_ANSWER | space.NO_RIGHT), ids=os.strerror
    )
    def test_is_told_of_a_file(self, company, monkeypatch, number):
        company.key("backend_worker")

        def fails(*_, **__):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(gate, "validate", fails)
        answer = company.call("backend_worker", "send_mail", **MAIL)
        assert (answer.status, answer.code) == (507, "STORAGE_FULL")

    @pytest.mark.parametrize("folder", ["postgres", "postgres/pg_wal"])
    def test_may_be_one_for_the_data_or_its_log_alone(self, settings, tmp_path, folder):
        settings.DATABASE_URL, settings.NEXUS_VAR = "", tmp_path
        settings.NEXUS_DISK_RESERVE = MEGABYTE
        (tmp_path / "postgres" / "pg_wal").mkdir(parents=True)
        with disk_under(tmp_path / folder, 2):
            (tmp_path / "postgres" / "pg_wal").mkdir(exist_ok=True)
            space.require_space()
            with full(tmp_path / folder, but=0.5), denied("STORAGE_FULL"):
                space.require_space()

    def test_of_a_server_elsewhere_is_not_looked_at(self, settings, monkeypatch):
        disk(monkeypatch, 0)
        settings.DATABASE_URL = "postgresql://elsewhere"
        space.require_space()
        settings.DATABASE_URL = ""
        with denied("STORAGE_FULL"):
            space.require_space()


class TestTheRoomBeyondTheReserve:
    def test_is_what_the_disk_of_the_database_has_left(self, settings, tmp_path):
        settings.DATABASE_URL, settings.NEXUS_VAR = "", tmp_path
        settings.NEXUS_DISK_RESERVE = MEGABYTE
        (tmp_path / "elsewhere").mkdir()
        with disk_under(tmp_path / "postgres", 4):
            room, names = space.room_beyond_reserve(tmp_path / "postgres")
            assert 2 * MEGABYTE < room <= 3 * MEGABYTE
            assert 0 < names < space.UNLIMITED
            no_limit = (space.UNLIMITED, space.UNLIMITED)
            assert space.room_beyond_reserve(tmp_path / "elsewhere") == no_limit
            settings.DATABASE_URL = "postgresql://elsewhere"
            assert space.room_beyond_reserve(tmp_path / "postgres") == no_limit


class TestADiskThatTakesFiles:
    ROOM = {"f_flag": 0, "f_bavail": 1, "f_files": 10, "f_favail": 1}

    @pytest.mark.parametrize(
        ("found", "takes"),
        [
            ({}, True),
            ({"f_bavail": 0}, False),
            ({"f_favail": 0}, False),
            ({"f_files": 0, "f_favail": 0}, True),
            ({"f_flag": os.ST_RDONLY}, False),
        ],
        ids=["room", "no bytes", "no names", "names are not counted", "read only"],
    )
    def test_has_bytes_and_names_and_can_be_written(self, monkeypatch, tmp_path, found, takes):
        monkeypatch.setattr(space.os, "statvfs", lambda _: SimpleNamespace(**self.ROOM | found))
        assert space.takes_files(tmp_path) is takes
