"""The whole API by its own description, at length: many made-up calls for each operation."""

import pytest

from tests.clients.api import OPERATIONS, described, tried, try_as_holder, try_as_stranger
from tests.clients.staff import at_work

TOOLS = [one for one in OPERATIONS if one[1].startswith("/api/v1/tools/")]


@pytest.fixture(scope="module")
def api():
    return described(phase="fuzzing", examples=200)


@pytest.fixture(scope="module")
def staff(django_db_setup, django_db_blocker):
    with at_work(django_db_blocker) as staff:
        yield staff


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_every_operation_answers_its_holder_as_described(operation, api, staff):
    tried(operation, try_as_holder, api, staff)


@pytest.mark.parametrize("operation", TOOLS, ids=" ".join)
def test_every_tool_refuses_a_stranger_as_described(operation, api, staff):
    tried(operation, try_as_stranger, api, staff)
