"""Whose words a system mail quotes. Null, the words of what was sent before, rewrites no row."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0015_blocked_mails_by_time")]

    operations = [
        migrations.AddField(
            "mail",
            "quoted",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), null=True, size=None
            ),
        ),
    ]
