"""Blocked mails of a day are a range of an index, whoever looks at them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0014_notice_wording")]

    operations = [
        migrations.RemoveIndex("mailrejection", "rejection_at"),
        migrations.AddIndex(
            "mailrejection", models.Index(fields=["-attempted_at", "-id"], name="rejection_time")
        ),
    ]
