from django.db import migrations, models

WRITERS = """
UPDATE tasks_task SET
    subject_writer = creator_id,
    text_writers = jsonb_build_object(
        'description', creator_id, 'active_form', creator_id,
        'metadata', coalesce((SELECT jsonb_object_agg(key, creator_id)
                              FROM jsonb_object_keys(metadata) AS key), '{}'::jsonb))
WHERE creator_id IS NOT NULL;
UPDATE tasks_comment c SET writer = a.id
FROM tasks_task t JOIN orgchart_agent a ON a.organisation_id = t.organisation_id
WHERE t.id = c.task_id AND c.author = 'agent:' || a.handle;
"""


class Migration(migrations.Migration):
    """Who wrote each text of a task last; what was there is its creator's."""

    dependencies = [("orgchart", "0002_names"), ("tasks", "0006_status_machine")]

    operations = [
        migrations.AddField(
            model_name="comment",
            name="writer",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="task",
            name="subject_writer",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="task",
            name="text_writers",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.RunSQL(WRITERS, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["organisation", "status", "subject_writer", "number"], name="task_by_writer"
            ),
        ),
    ]
