"""The NEXUS company with a real repository: contracts with branches, files in real work trees."""

import pytest

from tests.company import load_company
from tests.workspace.git.world import Hands, a_root


@pytest.fixture(autouse=True)
def company(settings):
    with a_root() as root:
        settings.WORKSPACE_ROOT = root
        yield


@pytest.fixture
def nexus(db):
    return load_company("nexus")


@pytest.fixture
def hands(nexus):
    return Hands(nexus)
