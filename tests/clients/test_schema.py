"""Schemathesis tries the API by its own description: nothing undocumented, nothing broken."""

import pytest

from tests.clients.api import OPERATIONS, described, tried, try_as_holder
from tests.clients.staff import at_work


@pytest.fixture(scope="module")
def api():
    return described(phase="coverage")


@pytest.fixture(scope="module")
def staff(django_db_setup, django_db_blocker):
    with at_work(django_db_blocker) as staff:
        yield staff


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_every_operation_answers_as_described(operation, api, staff):
    tried(operation, try_as_holder, api, staff)
