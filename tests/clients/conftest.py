"""The company, served, for clients of other people; and those clients, installed once."""

import shutil

import httpx
import pytest

from tests.clients import installs
from tests.committed import company, url
from tests.journeys.stage import Stage
from tests.patience import PATIENCE

__all__ = ["company", "url"]


@pytest.fixture(scope="module")
def everybody(company, url):
    """All of a company that a real server shows."""
    with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http:
        yield Stage(company, http)


@pytest.fixture
def stage(everybody):
    """Everybody of the company; what a test leaves open ends with it."""
    yield everybody
    everybody.close_everything()


@pytest.fixture(scope="session")
def their_python():
    """The interpreter with LangGraph and the OpenAI Agents SDK."""
    return installs.python()


@pytest.fixture(scope="session")
def their_programs():
    """The folder with the programs from npm."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"the clients from npm need {' and '.join(missing)}, not installed here")
    try:
        return installs.npm()
    except installs.Unreachable as problem:  # only Python's index is promised to be there
        pytest.skip(str(problem))
