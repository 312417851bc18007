"""The constitution's six offices, loaded from their pack."""

import pytest

from orgchart.policy_cache import POLICIES
from tests.company import load_company


@pytest.fixture
def company(db):
    POLICIES.clear()
    yield load_company("constitution")
    POLICIES.clear()
