"""An artifact stays in the group that its author was in (Spec: memory 12)."""

import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
ALTER TABLE documents_artifact DISABLE TRIGGER artifact_stays;
UPDATE documents_artifact a SET group_id = g.group_id
FROM orgchart_agent g WHERE g.id = a.agent_id AND g.group_id IS NOT NULL;
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE documents_artifact ENABLE TRIGGER artifact_stays;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0007_people_in_memories"),
        ("orgchart", "0010_pauses_of_the_board"),
    ]

    operations = [
        migrations.AddField(
            model_name="artifact",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="orgchart.group",
            ),
        ),
        migrations.RunSQL(FORWARD, migrations.RunSQL.noop),
    ]
