from django.db import migrations


class Migration(migrations.Migration):
    """Rate buckets are written at every call and worth nothing after a crash."""

    dependencies = [("toolbox", "0001_tables")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE toolbox_ratebucket SET UNLOGGED, SET (fillfactor = 50)",
            "ALTER TABLE toolbox_ratebucket SET LOGGED, RESET (fillfactor)",
        )
    ]
