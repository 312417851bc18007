"""Cases that are not over, by state."""

import governance.cases.vocabulary
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('governance', '0006_officers_of_a_case'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='case',
            index=models.Index(condition=models.Q(('state__in', [governance.cases.vocabulary.State['OPEN'], governance.cases.vocabulary.State['PAUSED']])), fields=['state', '-id'], name='case_unended'),
        ),
    ]
