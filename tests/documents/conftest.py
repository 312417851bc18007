"""The NEXUS company, and its tree in a folder of the test's own."""

import pytest

from tests.documents.world import found


@pytest.fixture(autouse=True)
def company(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"
    return settings.WORKSPACE_ROOT


@pytest.fixture
def nexus(db):
    return found()
