"""Frames by their parties, and sessions by time, for people's lists."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orgchart', '0012_agents_that_left'),
        ('toolbox', '0017_grants_of_a_contract'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='frame',
            index=models.Index(fields=['opener', '-id'], name='frame_opener'),
        ),
        migrations.AddIndex(
            model_name='frame',
            index=models.Index(fields=['assignee', '-id'], name='frame_assignee'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['-opened_at'], name='session_newest'),
        ),
    ]
