"""The NEXUS company loaded once for a module; every test begins from there and leaves no trace."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tests.company import Company, load_company


def rolled_back() -> Iterator[None]:
    """A transaction that is always taken back, as Django's own test case has it."""
    atomic = transaction.atomic()
    atomic._from_testcase = True
    with atomic:
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Company]:
    """The company of a module's tests."""
    with django_db_blocker.unblock():
        begun = rolled_back()
        next(begun)
        yield load_company("nexus")
        next(begun, None)


@pytest.fixture
def nexus(loaded: Company) -> Iterator[Company]:
    """The company as it was loaded; keys are made anew, policies read anew."""
    begun = rolled_back()
    next(begun)
    yield Company(loaded.organisation)
    next(begun, None)
