"""Why a process must not serve in production: its database role, its key, its pages' files."""

from __future__ import annotations

from tempfile import TemporaryFile

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import staticfiles_storage

from ledger import keys
from ledger.seal_format import write_public
from nexus_site.run import roles
from nexus_site.run.backup import BEGUN

OWNER_SERVES = (
    "The database role that serves could switch off what the database guards: it is, or may "
    "become, a superuser or a role that creates roles or tables (temporary ones too), copies the "
    "server, reads or writes its files, runs programs on it, sets session_replication_role, "
    "creates triggers, writes all columns of ledger_event, or owns the tables, their schema, the "
    "database, or anything in it. Name in DATABASE_OWNER_URL the owner of the database, and in "
    "DATABASE_URL a role that owns nothing and is a member of no other"
)


NOT_TRUSTED = (
    "The ledger's key that signs is not among those that are trusted, so what it seals would not "
    "verify: add {public} to LEDGER_TRUSTED_KEYS, or to ed25519.pub where that is not set"
)

NOT_COLLECTED = (
    "STATIC_ROOT={root} lacks files of the pages, such as {missing}, so they could not be shown: "
    "run `manage.py collectstatic` with these settings, then start again"
)


NOT_RESTORED = (
    "A restore was ended before its files were in place: run the same `manage.py restore` again. "
    "It says so in {mark}; remove that file if you restored in another way"
)


def problem_of_restore() -> str:
    """Why nothing may serve yet: half of a backup was restored; '' where it may."""
    mark = settings.NEXUS_VAR / BEGUN
    return NOT_RESTORED.format(mark=mark) if mark.exists() else ""


def problem_of_start() -> str:
    """Why this process must not serve, most of it in production only; '' where it may."""
    if problem := problem_of_restore():
        return problem
    if not settings.PRODUCTION:
        return ""
    return problem_of_keys() or (OWNER_SERVES if roles.is_unsafe() else "")


def problem_of_keys() -> str:
    """Why nothing could be sealed or verified; what is not sealed can be deleted unseen."""
    try:
        signer = keys.signer(may_create=False)
        is_trusted = signer.key_id in keys.trusted()
    except (keys.KeyMissing, OSError, ValueError) as problem:
        return f"The ledger's keys cannot be used: {problem}"
    return "" if is_trusted else NOT_TRUSTED.format(public=write_public(signer.public))


def problem_of_ledger_folder() -> str:
    """Why no seal could be remembered: the job that seals would fail at each run."""
    try:
        with TemporaryFile(dir=keys.folder()):
            return ""
    except OSError as problem:
        return (
            f"LEDGER_DIR={settings.LEDGER_DIR} cannot be written, so nothing is sealed: {problem}"
        )


def problem_of_pages() -> str:
    """Why people's pages would fail: what they load was not collected, or of an older version."""
    if not settings.PRODUCTION:
        return ""
    for name in (name for finder in get_finders() for name, _ in finder.list([])):
        try:
            staticfiles_storage.url(name)
        except ValueError:  # the manifest has no such file
            return NOT_COLLECTED.format(root=settings.STATIC_ROOT, missing=name)
    return ""
