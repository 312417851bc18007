"""The whole API by its own description, at length: many made-up calls for each operation."""

import pytest

from tests.clients.api import described, try_as_holder, try_as_stranger
from tests.clients.staff import at_work

API = described(phase="fuzzing", examples=200)


@pytest.fixture(scope="module")
def staff(django_db_setup, django_db_blocker):
    with at_work(django_db_blocker) as staff:
        yield staff


@API.parametrize()
def test_every_operation_answers_its_holder_as_described(case, staff):
    try_as_holder(case, staff)


@API.include(path_regex="^/api/v1/tools/").parametrize()
def test_every_tool_refuses_a_stranger_as_described(case, staff):
    try_as_stranger(case, staff)
