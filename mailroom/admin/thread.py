"""A mail among the mails it answers and that answer it: one query each way, bounded."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from core.database import fetch_row
from mailroom.admin.rejections_and_grants import contract_url
from mailroom.models import Escalation, Mail

MOST = 200
DEEPEST = 100

ROOT = f"""
WITH RECURSIVE up(id, reply_to_id, depth) AS (
    SELECT id, reply_to_id, 0 FROM mailroom_mail WHERE id = %(mail)s
    UNION ALL
    SELECT m.id, m.reply_to_id, up.depth + 1
    FROM mailroom_mail m JOIN up ON m.id = up.reply_to_id
    WHERE up.depth < {DEEPEST}
)
SELECT id FROM up ORDER BY depth DESC LIMIT 1
"""

# Rounds of the recursion run only as far as the inner limit asks for rows: the nearest are shown.
THREAD = f"""
WITH RECURSIVE down(id, depth, path) AS (
    SELECT id, 0, ARRAY[id::text] FROM mailroom_mail WHERE id = %(root)s
    UNION ALL
    SELECT m.id, down.depth + 1, down.path || m.id::text
    FROM down CROSS JOIN LATERAL (
        SELECT id FROM mailroom_mail WHERE reply_to_id = down.id LIMIT {MOST}
    ) AS m
    WHERE down.depth < {DEEPEST}
)
SELECT id, depth FROM (SELECT * FROM down LIMIT {MOST}) AS near ORDER BY path
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStep:
    """One mail of a thread, how deep it answers, whether it is the one looked at, and what became
    of the escalation that it is.
    """

    mail: Mail
    depth: int
    this: bool
    escalation: Escalation | None = None

    @property
    def contract_url(self) -> str:
        """Where the contract that the mail names can be seen."""
        return contract_url(self.mail.contract_ref)


def thread_of(mail: Mail) -> list[ThreadStep]:
    """The whole conversation a mail belongs to, each answer under what it answers."""
    found = fetch_row(ROOT, {"mail": mail.id})
    with connection.cursor() as cursor:
        cursor.execute(THREAD, {"root": found[0] if found else mail.id})
        depths = dict(cursor.fetchall())
    depths.setdefault(mail.id, 0)
    mails = Mail.objects.in_bulk(list(depths))
    escalations = {row.mail_id: row for row in Escalation.objects.filter(mail_id__in=list(depths))}
    return [
        ThreadStep(
            mail=mails[mail_id],
            depth=min(depth, 8),
            this=mail_id == mail.id,
            escalation=escalations.get(mail_id),
        )
        for mail_id, depth in depths.items()
        if mail_id in mails
    ]
