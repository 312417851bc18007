"""The NEXUS company, with an org_change contract for HR where a test wants one."""

import pytest

from tests.documents.world import found
from tests.governance.world import authorise


@pytest.fixture(autouse=True)
def company_root(settings, tmp_path):
    settings.NEXUS_COMPANY_ROOT = tmp_path / "company"
    return settings.NEXUS_COMPANY_ROOT


@pytest.fixture
def nexus(db):
    return found()


@pytest.fixture
def contract(nexus):
    return authorise(nexus)
