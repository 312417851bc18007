"""The NEXUS company committed for a module, so that a real server and other connections see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command

from tests.company import Company, load_company
from tests.server import serving


@contextmanager
def committing(blocker: Any) -> Iterator[None]:
    """Fixtures of a module may write; nothing of it is left afterwards."""
    with blocker.unblock():
        try:
            yield
        finally:
            call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


@pytest.fixture(scope="module")
def company(django_db_setup: None, django_db_blocker: Any) -> Iterator[Company]:
    """One for all tests of the module."""
    with committing(django_db_blocker):
        yield load_company("nexus")


@pytest.fixture(scope="module")
def url(company: Company) -> Iterator[str]:
    """Where the company is served."""
    with serving() as address:
        yield address
