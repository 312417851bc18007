"""People list the rows of one organisation newest first, however many the others have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0013_paths_of_artifacts"),
        ("orgchart", "0012_agents_that_left"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="artifact",
            index=models.Index(fields=["organisation", "-id"], name="artifact_newest"),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(fields=["organisation", "-id"], name="memory_newest"),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["organisation", "-id"], name="document_organisation"),
        ),
    ]
