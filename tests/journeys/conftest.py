"""Journeys: whole stories of the company over real HTTP, each agent with a key of its own."""

import httpx
import pytest

from tests.committed import company
from tests.journeys.stage import Stage
from tests.server import serving

__all__ = ["company"]


@pytest.fixture(scope="session")
def address(django_db_setup):
    """One server for all journeys of a process; each module brings its own company."""
    with serving() as url:
        yield url


@pytest.fixture
def stage(company, address):
    """The company with a client for every agent; what a story leaves open ends with it."""
    with httpx.Client(base_url=address, timeout=40, trust_env=False) as http:
        stage = Stage(company, http)
        yield stage
        stage.close_everything()
