"""Each approval of a skill and each withdrawal is a version, so that no older page decides."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspace", "0015_taking_services_down")]

    operations = [
        migrations.AddField(
            model_name="skill",
            name="version",
            field=models.PositiveIntegerField(default=1, db_default=1),
        ),
    ]
