"""The constitution's six offices, loaded from their pack."""

import pytest

from tests.company import load_company


@pytest.fixture
def company(db):
    return load_company("constitution")
