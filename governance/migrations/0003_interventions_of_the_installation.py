"""An intervention may concern the whole installation: a skill belongs to no organisation."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0002_constitution_holds"),
        ("orgchart", "0003_pending_change"),
    ]

    operations = [
        migrations.AlterField(
            model_name="intervention",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
    ]
