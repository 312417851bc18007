"""The long proofs stand on what the tests stand on."""

from tests.conftest import *  # noqa: F403  the same database and folders
from tests.conftest import _places_of_the_tests_own, _tests_may_empty_what_only_grows

__all__ = ["_places_of_the_tests_own", "_tests_may_empty_what_only_grows"]
