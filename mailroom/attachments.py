"""Opening the attachments of a mail: what its reader gets is what was attached."""

from __future__ import annotations

from base64 import b64encode
from typing import cast

from core.decision import Code, refuse
from documents.attachments import kept_contents
from documents.rules import is_denied_to
from mailroom.models import Mail
from mailroom.results import AttachedFile
from toolbox.caller import Caller

SHOWN = 20_000
"""Bytes of an attachment that a mail shows without being asked."""


def open_attachments(
    mail: Mail, wanted: str | None, successor: Caller | None = None
) -> list[AttachedFile]:
    """The attachments of a mail that its reader may read, with the content of short texts.

    A `successor`, who reads it in place of its recipient, gets none at a path that its role is
    denied (Spec: mail 44). `wanted` is the digest of one to open whole. Raises Denied NOT_FOUND
    where the mail has no such attachment.
    """
    found: list[AttachedFile] = [
        cast("AttachedFile", dict(each))
        for each in mail.attachments
        if successor is None or not is_denied_to(each["path"], successor.agent, successor.policy)
    ]
    digests = [
        each["sha256"]
        for each in found
        if "sha256" in each and (each["sha256"] == wanted or each.get("bytes", 0) <= SHOWN)
    ]
    if wanted is not None and wanted not in digests:
        raise refuse(
            Code.NOT_FOUND,
            "this mail has no such attachment",
            "name the sha256 of one that read_mail lists",
            rule="an attachment is read with its mail (spec: mail 28)",
        )
    contents = kept_contents(mail.organisation_id, digests) if digests else {}
    for each in found:
        content = contents.get(each.get("sha256", ""))
        if content is not None:
            _show(each, content, whole=each["sha256"] == wanted)
    return found


def _show(attached: AttachedFile, content: bytes, *, whole: bool) -> None:
    try:
        attached["text"] = content.decode()
    except UnicodeDecodeError:
        if whole:
            attached["base64"] = b64encode(content).decode()
