"""The contracts of a branch, by its name."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('contracts', '0014_many_submissions'),
        ('mailroom', '0019_no_index_of_blocked_mails_by_time'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='contract',
            index=models.Index(fields=['organisation', 'assigned_branch'], name='contract_branch'),
        ),
    ]
