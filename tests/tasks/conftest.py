"""Organisations and their agents for the tasks room."""

import pytest

from tasks import services
from tasks.rules.values import TaskUpdate
from tests.tasks.world import NOW, Http, caller_of, company, dev_team


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


@pytest.fixture
def who(team):
    return lambda handle: caller_of(team, handle)


@pytest.fixture
def make(who):
    def made(by: str = "team-lead", **fields) -> str:
        return services.create_task(caller=who(by), subject="x", now=NOW, **fields)["id"]

    return made


@pytest.fixture
def update(who):
    def updated(by: str, task_id: str, *, at=NOW, **fields) -> dict:
        return services.update_task(
            caller=who(by), task_id=task_id, update=TaskUpdate(**fields), now=at
        )

    return updated
