"""The mail that delivers a contract."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.issuing.changes import NamedChange
from contracts.models import Contract
from core.limits import MAX_MAIL_BODY


def mail_body(row: Contract, changes: Sequence[NamedChange]) -> str:
    """The contract's text, then its fields if they fit into the mail."""
    lines = {
        "contract": row.id,
        "kind": row.kind,
        "deadline": row.deadline and row.deadline.isoformat(),
        "mode": row.mode,
        "workspace_scope": ", ".join(row.workspace_scope),
        "assigned_branch": row.assigned_branch,
        "channels": "; ".join(
            f"{g['from']} -> {g['to']}: {', '.join(g['types'])}" for g in row.grants
        ),
        "supersedes": row.supersedes_id,
        "answers": row.answers_id and f"escalation {row.answers_id}",
        "request": row.request_id,
        "environment": row.environment,
        "artifact": row.artifact,
        "expires_at": row.expires_at and row.expires_at.isoformat(),
        "changes": ", ".join(map(str, changes)),
        "amount": f"{row.amount} {row.currency}" if row.amount is not None else "",
    }
    fields = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
    whole = f"{row.body}\n\n--\n{fields}"
    return whole if len(whole) <= MAX_MAIL_BODY else row.body
