"""People list the rows of one organisation newest first, however many the others have."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("contracts", "0015_branches_of_contracts"),
        ("orgchart", "0012_agents_that_left"),
        ("workspace", "0012_newest_deployment_of_a_service"),
    ]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="deployment",
            index=models.Index(fields=["organisation", "-id"], name="deployment_organisation"),
        ),
        migrations.AddIndex(
            model_name="imagebuild",
            index=models.Index(fields=["organisation", "-id"], name="image_newest"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["organisation", "-id"], name="run_organisation"),
        ),
    ]
