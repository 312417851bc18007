"""People list the rows of one organisation newest first, however many the others have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0012_agents_that_left"),
        ("tasks", "0012_one_walk_for_all"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["organisation", "-id"], name="task_newest"),
        ),
    ]
