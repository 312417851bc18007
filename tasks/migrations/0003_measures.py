from django.db import migrations

FORWARD = """
CREATE INDEX tasks_measured ON ledger_event (organisation_id, at) INCLUDE (action, code)
    WHERE tool = 'task_update' OR action LIKE 'task.%';
"""

BACKWARD = "DROP INDEX tasks_measured;"


class Migration(migrations.Migration):
    """The events that the measures count, by time (Spec: tasks 48)."""

    dependencies = [("tasks", "0002_no_circles"), ("ledger", "0001_events_and_seals")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
