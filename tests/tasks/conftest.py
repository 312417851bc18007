"""Organisations and their agents for the tasks room."""

import pytest

from tests.tasks.world import Http, company, dev_team


@pytest.fixture(autouse=True)
def _fresh(settings):
    """Ids of organisations come again after a rollback; policies must not."""
    settings.NEXUS_RATE_BURST = 100_000


@pytest.fixture
def team(db):
    return dev_team(task_lease=1800)


@pytest.fixture
def http(team) -> Http:
    return Http(team)


@pytest.fixture
def nexus(db):
    return company()
