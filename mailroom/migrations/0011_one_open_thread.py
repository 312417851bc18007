"""Escalations of one sender to one superior are one thread until the superior answers."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

UNSETTLED = ("open", "unanswered")

JOIN = """
UPDATE mailroom_escalation AS e SET first_id = f.id
FROM (SELECT sender_id, recipient_id, min(id) AS id FROM mailroom_escalation
      WHERE state IN ('open', 'unanswered') GROUP BY sender_id, recipient_id) AS f
WHERE e.state IN ('open', 'unanswered') AND e.sender_id = f.sender_id
  AND e.recipient_id = f.recipient_id AND e.id <> f.id;
UPDATE mailroom_escalation AS f SET
    told_ceo_at = coalesce(f.told_ceo_at, noted.told_ceo_at),
    told_board_at = coalesce(f.told_board_at, noted.told_board_at),
    board_waits_since = coalesce(f.board_waits_since, noted.board_waits_since)
FROM (SELECT coalesce(e.first_id, e.id) AS id, max(r.told_ceo_at) AS told_ceo_at,
             max(r.told_board_at) AS told_board_at, min(e.board_waits_since) AS board_waits_since
      FROM mailroom_escalation e JOIN mailroom_escalation r ON r.id = coalesce(e.root_id, e.id)
      WHERE e.state IN ('open', 'unanswered') GROUP BY 1) AS noted
WHERE f.id = noted.id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


def to_self(related_name):
    return models.ForeignKey(
        "mailroom.escalation",
        on_delete=django.db.models.deletion.PROTECT,
        null=True,
        related_name=related_name,
    )


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0010_names")]

    operations = [
        migrations.AlterField("escalation", "root", to_self("chain")),
        migrations.AddField("escalation", "first", to_self("thread")),
        migrations.RunSQL(JOIN, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "escalation",
            models.UniqueConstraint(
                fields=["sender", "recipient"],
                condition=Q(first=None, state__in=UNSETTLED),
                name="escalation_one_open_thread",
            ),
        ),
    ]
