"""Moves of branches say whose they are, so that people list those of one organisation at once."""

import django.db.models.deletion
from django.db import migrations, models

FILL = """
UPDATE workspace_branchmove r SET organisation_id = p.organisation_id
FROM workspace_repository p WHERE p.id = r.repository_id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0012_agents_that_left"),
        ("workspace", "0013_rows_of_one_organisation"),
    ]

    operations = [
        migrations.AddField(
            model_name="branchmove",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="branchmove",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="branchmove",
            index=models.Index(fields=["organisation", "-id"], name="branch_move_organisation"),
        ),
    ]
