"""The company, served, for clients of other people; and those clients, installed once."""

import shutil

import httpx
import pytest
from django.core.management import call_command

from tests.clients import installs
from tests.company import load_company
from tests.journeys.stage import Stage
from tests.server import serving


@pytest.fixture(scope="module")
def served(django_db_setup, django_db_blocker):
    """A stage in a NEXUS company that a real server shows, and the server's address."""
    with django_db_blocker.unblock():
        company = load_company("nexus")
        with serving() as url, httpx.Client(base_url=url, timeout=40, trust_env=False) as http:
            yield Stage(company, http), url
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


@pytest.fixture
def stage(served):
    """Everybody of the company; what a test leaves open ends with it."""
    stage, _ = served
    yield stage
    stage.close_everything()


@pytest.fixture
def url(served):
    """Where the company is served."""
    return served[1]


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
