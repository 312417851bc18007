from django.db import migrations

FORWARD = """
DROP INDEX tasks_measured;
CREATE INDEX tasks_measured ON ledger_event (organisation_id, at) INCLUDE (action, code, tool)
    WHERE tool IN ('task_update', 'assign_task', 'manage_backlog') OR action LIKE 'task.%';
CREATE INDEX tasks_ill_moved ON ledger_event (organisation_id, at)
    WHERE code = 'INVALID_TRANSITION';
"""

BACKWARD = """
DROP INDEX tasks_ill_moved;
DROP INDEX tasks_measured;
CREATE INDEX tasks_measured ON ledger_event (organisation_id, at) INCLUDE (action, code)
    WHERE tool = 'task_update' OR action LIKE 'task.%';
"""


class Migration(migrations.Migration):
    """The events that the measures count, of every tool that updates tasks."""

    dependencies = [("tasks", "0004_undated_claims"), ("ledger", "0001_events_and_seals")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
