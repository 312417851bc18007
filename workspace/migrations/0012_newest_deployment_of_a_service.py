"""The newest deployment of a service, whatever its environment."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('contracts', '0015_branches_of_contracts'),
        ('orgchart', '0012_agents_that_left'),
        ('workspace', '0011_numbers_at_the_end'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='deployment',
            index=models.Index(fields=['organisation', 'service', '-id'], name='deployment_newest'),
        ),
    ]
