"""People list the rows of one organisation newest first, and the open frames of all."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0012_agents_that_left"),
        ("toolbox", "0020_watches_without_sequence"),
    ]

    operations = [
        migrations.AlterField(
            model_name="frame",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AlterField(
            model_name="session",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="frame",
            index=models.Index(
                condition=models.Q(("state__in", ["open", "taken"])),
                fields=["id"],
                name="frame_unended",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["organisation", "-opened_at"], name="session_organisation"),
        ),
    ]
