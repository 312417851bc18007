import uuid

from django.db import migrations, models

SET_UNLOGGED = "ALTER TABLE toolbox_watch SET UNLOGGED"


class Migration(migrations.Migration):
    """No sequence of an unlogged table: a replica that takes over cannot read it."""

    dependencies = [("toolbox", "0019_wake_one_organisation")]

    operations = [
        migrations.RunSQL(migrations.RunSQL.noop, SET_UNLOGGED),
        migrations.DeleteModel("Watch"),
        migrations.CreateModel(
            name="Watch",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("agent_id", models.BigIntegerField()),
                ("listener", models.IntegerField()),
            ],
            options={
                "verbose_name_plural": "watches",
                "indexes": [models.Index(fields=["agent_id"], name="toolbox_watch_agent")],
            },
        ),
        migrations.RunSQL(SET_UNLOGGED, migrations.RunSQL.noop),
    ]
