"""Calls that may be repeated: the first answer is kept for 24 hours (Spec: wire 19)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json, to_json

from core.database import fetch_row
from core.decision import Code, refuse
from core.key_form import without_keys
from toolbox.caller import Caller
from toolbox.models import IdempotencyRecord
from toolbox.quotas.charging import charge_answer
from toolbox.registry import REGISTRY

KEPT_FOR = timedelta(hours=24)
MAX_KEY = 255
LARGEST = 64 * 1024  # bytes of an answer that is kept
LARGEST_WAITED = 8 * 1024
KEY_PATTERN = "^[!-~]([ -~]*[!-~])?$"
"""What HTTP carries unchanged: ASCII that prints, no space at either end."""
NOT_KEPT = frozenset(
    {
        Code.IDEMPOTENCY_MISMATCH,
        Code.RATE_LIMITED,
        Code.QUOTA_EXCEEDED,
        Code.UNAUTHENTICATED,
        Code.AGENT_PAUSED,
        Code.MODE_DENIED,
        Code.TOOL_DENIED,
        Code.DRIVER_UNAVAILABLE,
        Code.ISOLATION_UNAVAILABLE,
        Code.STORAGE_FULL,
    }
)
"""Answers that say nothing about the call itself, and so are not given again."""

CLAIM = """
INSERT INTO toolbox_idempotencyrecord AS r (agent_id, key, request_digest, due_at)
VALUES (%s, %s, %s, %s)
ON CONFLICT (agent_id, key) DO UPDATE
    SET request_digest = EXCLUDED.request_digest, due_at = EXCLUDED.due_at,
        status = NULL, answer = NULL
    WHERE r.due_at <= %s
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer given before."""

    status: int
    body: Mapping[str, Any]


def largest_of(name: str) -> int:
    """Bytes of an answer that are kept: none of what only reads, as it can be read again.

    Of a call that waited little is kept: what came would not come a second time.
    """
    tool = REGISTRY.get(name)
    if tool is None or not tool.read_only:
        return LARGEST
    return LARGEST_WAITED if tool.waits_for else 0


def _is_read_only(name: str) -> bool:
    tool = REGISTRY.get(name)
    return tool is not None and tool.read_only


def is_usable(key: str) -> bool:
    """Whether a text can be an idempotency key at all."""
    return (
        len(key) <= MAX_KEY
        and re.fullmatch(KEY_PATTERN, key) is not None
        and without_keys(key) == key
    )


def begin(
    caller: Caller, key: str | None, params: Mapping[str, Any], *, now: datetime
) -> KeptAnswer | None:
    """Claim the key for this call, or return the answer that it was given before.

    Needs an open transaction: two calls with one key wait for each other here. Raises Denied
    IDEMPOTENCY_MISMATCH when the key was used for another call, INVALID_PARAMS for a bad key.
    """
    if key is None:
        return None
    if not is_usable(key):
        raise refuse(
            Code.INVALID_PARAMS,
            f"Idempotency-Key must have 1 to {MAX_KEY} printable ASCII characters, and no API key",
            "send a shorter key, a UUID for instance",
            rule="idempotency key",
        )
    digest = hashlib.sha256(caller.tool.encode() + b"\0" + to_json(params)).digest()
    while fetch_row(CLAIM, [caller.agent.id, key, digest, now + KEPT_FOR, now]) is None:
        record = IdempotencyRecord.objects.filter(agent_id=caller.agent.id, key=key).first()
        if record is not None:  # else the call that had claimed it gave it back meanwhile
            return _kept_answer(record, caller.tool, digest)
    return None


def _kept_answer(record: IdempotencyRecord, tool: str, digest: bytes) -> KeptAnswer | None:
    """The answer of the call that claimed the key; None for one to make anew. Raises Denied."""
    if bytes(record.request_digest) != digest:
        raise refuse(
            Code.IDEMPOTENCY_MISMATCH,
            "this Idempotency-Key was used for another call",
            "use a new key for a new call, or repeat the first call exactly",
            rule="idempotency key",
        )
    if record.answer is None and _is_read_only(tool):
        return None
    if record.status is None:  # of a call whose tool acts outside
        raise refuse(
            Code.IDEMPOTENCY_MISMATCH,
            "this call was made before; it has not ended, or was broken off",
            "look in a few minutes what it changed; if nothing, make it again under a new key",
            rule="idempotency key",
        )
    if record.answer is None:
        raise refuse(
            Code.IDEMPOTENCY_MISMATCH,
            "this call was made before; its answer was too large to keep",
            "read what it changed; do not repeat it under another key",
            rule="idempotency key",
        )
    return KeptAnswer(record.status or 200, from_json(record.answer))


def keep(
    caller: Caller, key: str | None, status: int, body: Mapping[str, Any], *, now: datetime
) -> None:
    """Store the answer with its claim, in the transaction of the effect.

    Where it is too large, or the agent's bytes are used up, only that the call was made.
    """
    if key is None:
        return
    content = to_json(body)
    is_kept = len(content) <= largest_of(caller.tool) and charge_answer(
        caller=caller, size=len(content), now=now
    )
    answer = content.decode() if is_kept else None
    IdempotencyRecord.objects.filter(agent_id=caller.agent.id, key=key).update(
        status=status, answer=answer
    )


def release(caller: Caller, key: str) -> None:
    """Give a claim back, in its transaction, where the call has no answer yet."""
    IdempotencyRecord.objects.filter(agent_id=caller.agent.id, key=key).delete()
