"""People sign in as the tests of the admin have it."""

from tests.admin.conftest import groups, sign_in

__all__ = ["groups", "sign_in"]
