"""Contacts that contracts permit, by recipient."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mailroom', '0017_what_is_open'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='contactgrant',
            index=models.Index(fields=['recipient', '-id'], name='grant_recipient'),
        ),
    ]
