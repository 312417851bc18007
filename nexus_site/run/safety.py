"""Why a process must not serve in production: the role it connects as, the key it signs with."""

from __future__ import annotations

from django.conf import settings

from ledger import keys
from nexus_site.run import roles

OWNER_SERVES = (
    "The database role that serves could switch off what the database guards: it is a "
    "superuser, creates roles or owns the tables. Name the owner in DATABASE_OWNER_URL, and in "
    "DATABASE_URL a role that owns nothing"
)


def problem_of_start() -> str:
    """Why this process must not serve in production; '' where it may."""
    if not settings.PRODUCTION:
        return ""
    return problem_of_keys() or (OWNER_SERVES if roles.is_unsafe() else "")


def problem_of_keys() -> str:
    """Why nothing could be sealed or verified; what is not sealed can be deleted unseen."""
    try:
        keys.signer(may_create=False)
        keys.trusted()
    except (keys.KeyMissing, OSError, ValueError) as problem:
        return f"The ledger's keys cannot be used: {problem}"
    return ""
