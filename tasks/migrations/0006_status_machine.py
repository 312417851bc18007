import django_fsm
from django.db import migrations


class Migration(migrations.Migration):
    """The status is the state of a machine; the column does not change."""

    dependencies = [("tasks", "0005_measured_tools")]

    operations = [
        migrations.AlterField(
            model_name="task",
            name="status",
            field=django_fsm.FSMField(
                choices=[
                    ("pending", "pending"),
                    ("in_progress", "in progress"),
                    ("completed", "completed"),
                    ("deleted", "deleted"),
                ],
                default="pending",
                max_length=16,
                protected=True,
            ),
        ),
    ]
