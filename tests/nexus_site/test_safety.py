"""What must not serve in production says why, and does not start."""

import base64

import pytest

from nexus_site.run import safety, worker

KEY = base64.b64encode(b"k" * 32).decode()


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

    def test_are_made_by_themselves_elsewhere(self, settings):
        settings.PRODUCTION, settings.LEDGER_SIGNING_KEY = False, ""
        assert safety.problem_of_start() == ""
