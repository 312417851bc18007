"""Files in folders of the company tree that several agents write, and who wrote each last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db import transaction
from django.db.models import QuerySet

from core.database import hold_lock, needs_transaction
from core.decision import Code, refuse
from documents import rules
from documents.models import Document
from documents.tree import Missing
from ledger.history import last_write
from orgchart.policy.compiled import Agent
from orgchart.policy.paths import is_of_company, is_within
from orgchart.policy.protected import HOME
from toolbox.caller import Caller

FILE = "shared file"
"""The lock of a path where several agents may write."""


def is_shown(caller: Caller, path: str) -> bool:
    """Whether the caller reads the file at a path in its scope, as far as its writer decides that.

    Of the company tree in a transaction, until whose end no agent writes there: a file is in its
    place a moment before the event that names its writer is committed. Spec: files 22.
    """
    if not _is_shared(caller, path):
        return True
    hold_lock(FILE, caller.organisation_id, path, is_shared=True)
    return _may_read(caller, path)


@contextmanager
def shown(caller: Caller, path: str) -> Iterator[None]:
    """While a path in the caller's scope is read: no other agent writes there.

    Raises Missing where its writer's text is not for the caller (Spec: files 22).
    """
    with transaction.atomic() if is_of_company(path) else nullcontext():
        if not is_shown(caller, path):
            raise Missing
        yield


@needs_transaction
def require_own(caller: Caller, path: str) -> None:
    """Check that the caller writes over no document, and no file that is not shown to it; one
    writer at a time.

    What would be in a document's place has its author for those who read it. Raises Denied
    SCOPE_DENIED.
    """
    if is_of_company(path) and _documents(caller, path).exists():
        raise refuse(
            Code.SCOPE_DENIED,
            f"{path} is refused: it is a document, which stays as it was filed",
            "write another document, or choose another name",
            rule="a document is never overwritten (spec: files 18)",
        )
    if not _is_shared(caller, path):
        return
    hold_lock(FILE, caller.organisation_id, path)
    if not _may_read(caller, path):
        raise refuse(
            Code.SCOPE_DENIED,
            f"{path} is refused: another agent keeps a file of that name",
            "choose another name",
            rule="a shared folder is no mailbox (spec: files 22)",
        )


def _is_shared(caller: Caller, path: str) -> bool:
    """Whether other agents may write there: in the company tree, outside of the caller's home."""
    return is_of_company(path) and not is_within(path, HOME.replace("{agent}", caller.handle))


def _may_read(caller: Caller, path: str) -> bool:
    """Whether the last writer of a shared file shows its text to the caller."""
    writer = _writer(caller, path)
    return writer is None or rules.may_read_shared(writer, caller.agent, caller.policy)


def _writer(caller: Caller, path: str) -> Agent | None:
    """The agent that wrote a file of the company tree last; None for people and unknown ones."""
    author = _documents(caller, path).values_list("author_id", flat=True).first()
    if author is not None:
        return caller.policy.by_id.get(author)
    written = last_write(path, caller.organisation_id)
    actor = written.actor if written else ""
    return caller.policy.agents.get(actor.removeprefix("agent:"))


def _documents(caller: Caller, path: str) -> QuerySet[Document]:
    """The document that is filed at a path, if any."""
    return Document.objects.filter(organisation_id=caller.organisation_id, path=path)
