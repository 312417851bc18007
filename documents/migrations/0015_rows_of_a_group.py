"""What was written in a group is found by its own index when the group would be deleted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0014_rows_of_one_organisation"),
        ("orgchart", "0012_agents_that_left"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="memory", name="memory_group"),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                fields=["group", "-id"],
                condition=models.Q(group__isnull=False),
                name="memory_group",
            ),
        ),
        migrations.AddIndex(
            model_name="artifact",
            index=models.Index(
                fields=["group"],
                condition=models.Q(group__isnull=False),
                name="artifact_group",
            ),
        ),
    ]
