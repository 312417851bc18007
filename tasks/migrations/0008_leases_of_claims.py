from django.db import migrations, models

UNDATED = models.Q(
    owner__isnull=False, lease_due_at__isnull=True, status="in_progress", is_assigned=False
)
BEFORE = "UPDATE tasks_task SET lease_due_at = NULL WHERE status <> 'in_progress'"


class Migration(migrations.Migration):
    """A lease covers claims in progress, never an assignment or a pending task."""

    dependencies = [("tasks", "0007_writers")]

    operations = [
        migrations.RemoveConstraint(model_name="task", name="task_lease_has_holder"),
        migrations.RemoveIndex(model_name="task", name="task_undated"),
        migrations.AddField(
            model_name="task",
            name="is_assigned",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(BEFORE, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["organisation", "updated_at"], condition=UNDATED, name="task_undated"
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(lease_due_at__isnull=True)
                | models.Q(owner__isnull=False, status="in_progress", is_assigned=False),
                name="task_lease_has_holder",
            ),
        ),
    ]
