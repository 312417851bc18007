"""Keys of the test's own, and a ledger that is sealed."""

import pytest
from django.db import connections

from ledger.models import Seal
from tests.ledger.world import record_many, seal_until_covered, tamper


@pytest.fixture(autouse=True)
def ledger_dir(settings, tmp_path):
    settings.LEDGER_DIR = tmp_path / "keys"
    settings.LEDGER_SIGNING_KEY = ""
    settings.LEDGER_TRUSTED_KEYS = []
    settings.PRODUCTION = False
    return settings.LEDGER_DIR


@pytest.fixture
def ledger_db(django_db_setup, django_db_blocker):
    """The database with real transactions, for tests that write to the ledger alone.

    `transactional_db` empties every table of every room after each test; here two are enough.
    """
    with django_db_blocker.unblock():
        tamper("TRUNCATE ledger_event, ledger_seal")
        yield
        tamper("TRUNCATE ledger_event, ledger_seal")
        connections.close_all()


@pytest.fixture
def sealed(ledger_db) -> list[int]:
    """Three seals of four events each; their sequence numbers."""
    return seal_three()


@pytest.fixture
def sealed_with_people(transactional_db) -> list[int]:
    """The same, for tests that need rows of other rooms, too."""
    return seal_three()


def seal_three() -> list[int]:
    seqs: list[int] = []
    for _ in range(3):
        fresh = record_many(4)
        seal_until_covered(fresh)
        seqs += fresh
    assert Seal.objects.count() == 3
    return seqs
