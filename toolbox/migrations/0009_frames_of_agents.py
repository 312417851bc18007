"""An agent works in the newest frame that it has taken; its sessions hold no frame any more."""

from django.db import migrations, models

PUT_SESSIONS_BACK = """
UPDATE toolbox_session s SET frame_id = (
    SELECT f.id FROM toolbox_frame f
    WHERE f.assignee_id = s.agent_id AND f.state = 'taken' ORDER BY f.id DESC LIMIT 1
)
"""


class Migration(migrations.Migration):
    """Drop the column; reversed, every session is in its agent's frame."""

    dependencies = [("toolbox", "0008_frame_machine")]

    operations = [
        migrations.RunSQL(migrations.RunSQL.noop, PUT_SESSIONS_BACK),
        migrations.RemoveField("session", "frame"),
        migrations.AddIndex(
            "frame",
            models.Index(
                condition=models.Q(("state", "taken")),
                fields=["assignee", "-id"],
                name="frame_taken",
            ),
        ),
    ]
