"""A session works under one contract; until now that of its newest open grant."""

from django.db import migrations, models
from django.db.models import Q

BIND = """
UPDATE toolbox_session s SET contract_ref = g.contract_ref
FROM (SELECT DISTINCT ON (session_id) session_id, contract_ref FROM toolbox_modegrant
      WHERE closed_at IS NULL AND contract_ref <> '' ORDER BY session_id, opened_at DESC, id DESC) g
WHERE g.session_id = s.id
"""


class Migration(migrations.Migration):
    dependencies = [("toolbox", "0009_frames_of_agents")]

    operations = [
        migrations.AddField(
            "session", "contract_ref", models.CharField(blank=True, default="", max_length=32)
        ),
        migrations.RunSQL(BIND, migrations.RunSQL.noop),
        migrations.AddIndex(
            "session",
            models.Index(
                fields=["contract_ref"], condition=~Q(contract_ref=""), name="session_contract"
            ),
        ),
    ]
