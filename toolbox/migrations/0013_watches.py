from django.db import migrations, models


class Migration(migrations.Migration):
    """Which process waits for which agent; worth nothing after a crash."""

    dependencies = [("toolbox", "0012_wake_on_pause")]

    operations = [
        migrations.CreateModel(
            name="Watch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
        migrations.RunSQL(
            "ALTER TABLE toolbox_watch SET UNLOGGED", "ALTER TABLE toolbox_watch SET LOGGED"
        ),
    ]
