"""People list the rows of one organisation newest first, however many the others have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0008_delivery_by_organisation"),
        ("orgchart", "0012_agents_that_left"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="violation",
            index=models.Index(fields=["organisation", "-id"], name="violation_newest"),
        ),
    ]
