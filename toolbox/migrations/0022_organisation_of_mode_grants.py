"""Grants of modes say whose they are, so that people list those of one organisation at once."""

import django.db.models.deletion
from django.db import migrations, models

FILL = """
UPDATE toolbox_modegrant r SET organisation_id = p.organisation_id
FROM toolbox_session p WHERE p.id = r.session_id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0012_agents_that_left"),
        ("toolbox", "0021_rows_of_one_organisation"),
    ]

    operations = [
        migrations.AddField(
            model_name="modegrant",
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
            model_name="modegrant",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="modegrant",
            index=models.Index(fields=["organisation", "-id"], name="mode_grant_organisation"),
        ),
    ]
