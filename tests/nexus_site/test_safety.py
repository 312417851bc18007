"""What must not serve in production says why, and does not start."""

import base64
import json
from io import StringIO

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command

from ledger import keys
from ledger.seal_format import write_public
from nexus_site.management.commands import up
from nexus_site.run import safety, worker

KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def production(settings, tmp_path):
    settings.PRODUCTION = True
    settings.LEDGER_DIR = tmp_path / "ledger"
    settings.LEDGER_SIGNING_KEY, settings.LEDGER_TRUSTED_KEYS = KEY, []


class TestTheKeysOfTheLedger:
    def test_that_can_be_used_are_no_problem(self):
        assert safety.problem_of_keys() == ""

    @pytest.mark.parametrize("key", ["", "abc", "-----BEGIN PRIVATE KEY-----", KEY[:-8], "é"])
    def test_stop_the_start_where_nothing_could_be_signed(self, settings, key):
        settings.LEDGER_SIGNING_KEY = key
        assert "The ledger's keys cannot be used" in safety.problem_of_start()
        with pytest.raises(SystemExit, match="keys cannot be used"):
            worker.work()

    @pytest.mark.parametrize("trusted", ["abc", "zz" * 32, "é"])
    def test_stop_the_start_where_nothing_could_be_verified(self, settings, trusted):
        settings.LEDGER_TRUSTED_KEYS = [trusted]
        assert "The ledger's keys cannot be used" in safety.problem_of_start()

    def test_stop_the_start_where_what_is_signed_would_not_verify(self, settings):
        settings.LEDGER_SIGNING_KEY = ""
        made = keys.make_key()
        assert safety.problem_of_keys() == ""
        settings.LEDGER_TRUSTED_KEYS = [write_public(bytes(32))]
        assert write_public(made.public) in safety.problem_of_keys()

    def test_are_made_by_themselves_elsewhere(self, settings):
        settings.PRODUCTION, settings.LEDGER_SIGNING_KEY = False, ""
        assert safety.problem_of_start() == ""


class TestTheFolderOfTheLedger:
    def test_that_can_be_written_is_no_problem(self):
        assert safety.problem_of_ledger_folder() == ""
        assert not list(keys.folder().iterdir())

    def test_stops_the_start_where_no_seal_could_be_remembered(self, settings):
        settings.LEDGER_DIR = "/proc/nexus"
        assert "LEDGER_DIR=/proc/nexus cannot be written" in safety.problem_of_ledger_folder()

    def test_is_asked_by_the_start(self, settings, monkeypatch, capsys):
        monkeypatch.setattr(up.roles, "serving_role", lambda: "x")
        settings.LEDGER_DIR = "/proc/nexus"
        command = up.Command()
        assert command.begin() == 1
        assert "LEDGER_DIR=/proc/nexus" in capsys.readouterr().err


class TestTheFilesOfThePages:
    """What nobody collected cannot be shown: the login page would answer 500."""

    @pytest.fixture(autouse=True)
    def root(self, settings, tmp_path):
        storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
        settings.STATIC_ROOT = tmp_path / "static"
        settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
        return settings.STATIC_ROOT

    def test_stop_the_start_where_they_were_not_collected(self, settings):
        settings.DATABASE_URL, said = "", StringIO()
        assert up.Command(stderr=said).begin() == 1
        assert "run `manage.py collectstatic`" in said.getvalue()

    def test_stop_the_start_where_an_older_version_collected_them(self, root):
        call_command("collectstatic", interactive=False, verbosity=0)
        assert safety.problem_of_pages() == ""
        manifest = root / "staticfiles.json"
        kept = json.loads(manifest.read_text())
        del kept["paths"]["nexus/desk.css"]
        manifest.write_text(json.dumps(kept))
        staticfiles_storage.hashed_files = staticfiles_storage.load_manifest()[0]
        assert "such as nexus/desk.css" in safety.problem_of_pages()

    def test_are_found_without_that_elsewhere(self, settings):
        settings.PRODUCTION = False
        assert safety.problem_of_pages() == ""
