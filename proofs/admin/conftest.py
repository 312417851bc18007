"""People sign in as the tests of the admin have it."""

from tests.admin.conftest import company, groups, sign_in

__all__ = ["company", "groups", "sign_in"]
