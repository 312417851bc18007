from django.db import migrations, models

UNDATED = models.Q(
    owner__isnull=False, lease_due_at__isnull=True, status__in=["pending", "in_progress"]
)


class Migration(migrations.Migration):
    """Claims without a due time, which a lease that is set later reaches."""

    dependencies = [("tasks", "0003_measures")]

    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["organisation", "updated_at"], condition=UNDATED, name="task_undated"
            ),
        ),
    ]
