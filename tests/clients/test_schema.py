"""Schemathesis tries the API by its own description: nothing undocumented, nothing broken."""

import pytest

from tests.clients.api import described, try_as_holder
from tests.clients.staff import at_work

API = described(phase="coverage")


@pytest.fixture(scope="module")
def staff(django_db_setup, django_db_blocker):
    with at_work(django_db_blocker) as staff:
        yield staff


@API.parametrize()
def test_every_operation_answers_as_described(case, staff):
    try_as_holder(case, staff)
