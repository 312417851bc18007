"""A contract as its mails tell it."""

from __future__ import annotations

from contracts.models import Contract

MAIL_BODY = 10_000


def notice_text(row: Contract) -> str:
    """The contract as its notice says it: its text, then its terms where the mail has room."""
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
        "environment": row.environment,
        "artifact": row.artifact,
        "expires_at": row.expires_at and row.expires_at.isoformat(),
        "amount": f"{row.amount} {row.currency}" if row.amount is not None else "",
    }
    said = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
    whole = f"{row.body}\n\n--\n{said}"
    return whole if len(whole) <= MAIL_BODY else row.body
