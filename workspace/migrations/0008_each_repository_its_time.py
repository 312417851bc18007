"""When each repository is packed and pushed back: one that fails or hangs delays no other."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspace", "0007_skills_once_approved")]

    operations = [
        migrations.AddField(
            model_name="repository",
            name="packed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="repository",
            name="push_attempts",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="repository",
            name="push_due_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
