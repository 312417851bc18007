"""The NEXUS company, with an org_change contract for HR where a test wants one."""

import pytest

from tests.documents.world import found
from tests.governance.world import EVERYTHING, authorise
from tests.rows import do_once


@pytest.fixture(autouse=True)
def company_root(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"
    return settings.WORKSPACE_ROOT


@pytest.fixture
def nexus(db):
    return found()


@pytest.fixture
def contract(nexus):
    """HR may do one of everything that these tests do, and nothing else."""
    return do_once(f"HR authorised in {nexus.id}", lambda: authorise(nexus, *EVERYTHING))
