"""What a mail carries: the content of a file at the moment it was attached, kept by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from core.database import needs_transaction
from core.decision import Code, Denied, refuse
from documents.files import tree_of
from documents.models import Artifact, Document, KeptFile
from documents.shared import is_shown
from documents.tree import Missing, TooLarge, Unsafe
from orgchart.policy.paths import in_company_tree
from toolbox.caller import Caller
from toolbox.quotas.charging import charge

MAX_ATTACHED = 4 * 1024 * 1024
"""Bytes of one attached file."""


@needs_transaction
def keep_file(caller: Caller, path: str, now: datetime) -> KeptFile:
    """Keep what a path holds now; the caller's right to read it is decided.

    The same content is kept, and counted, once. Raises Denied NOT_FOUND where there is no file,
    QUOTA_EXCEEDED where it is too large or there is no room for it.
    """
    content = _read(caller, path)
    digest = hashlib.sha256(content).hexdigest()
    row = KeptFile(organisation_id=caller.organisation_id, sha256=digest, content=content)
    same = KeptFile.objects.filter(organisation_id=caller.organisation_id, sha256=digest)
    if not same.exists():  # a mebibyte is not sent to find out
        charge(agent=caller.agent.id, policy=caller.policy, size=len(content), now=now)
        KeptFile.objects.bulk_create([row], ignore_conflicts=True)
    return row


def kept_contents(organisation_id: int, digests: Sequence[str]) -> dict[str, bytes]:
    """The contents of kept files by their digests."""
    rows = KeptFile.objects.filter(organisation_id=organisation_id, sha256__in=digests)
    return {digest: bytes(content) for digest, content in rows.values_list("sha256", "content")}


def _read(caller: Caller, path: str) -> bytes:
    """The row of a document or an artifact is the truth; everything else is a file of the tree.

    What its sender may read of the repository is in its own clone (Spec: files 20).
    """
    if not is_shown(caller, path):
        raise _not_found(path)
    organisation, place = caller.organisation_id, in_company_tree(path, caller.handle)
    documents = Document.objects.filter(organisation_id=organisation, path=place)
    artifacts = Artifact.objects.filter(organisation_id=organisation, path=place)
    text = documents.values_list("body", flat=True).first()
    if text is None:
        text = artifacts.order_by("-version").values_list("content", flat=True).first()
    if text is not None:
        return text.encode()
    try:
        return tree_of(caller.policy.organisation).read(place, limit=MAX_ATTACHED)
    except (Missing, Unsafe) as problem:
        raise _not_found(path) from problem
    except TooLarge as problem:
        raise refuse(
            Code.QUOTA_EXCEEDED,
            f"{path[:200]} holds more than {MAX_ATTACHED} bytes",
            "attach a smaller file, or name its path in the mail",
            rule="an attachment has a limit",
            what="attachment bytes",
            limit=MAX_ATTACHED,
        ) from problem


def _not_found(path: str) -> Denied:
    return refuse(
        Code.NOT_FOUND,
        f"there is no file {path[:200]!r} to attach",
        "name a file or document that exists, or leave the attachment out",
        rule="an attachment exists (spec: mail 27)",
    )
