"""Contracts that are not over, by state."""

import contracts.vocabulary
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('contracts', '0012_order_of_deadlines'),
        ('mailroom', '0017_what_is_open'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='contract',
            index=models.Index(condition=models.Q(('state__in', (contracts.vocabulary.ContractState['PENDING'], contracts.vocabulary.ContractState['IN_PROGRESS'], contracts.vocabulary.ContractState['REVIEW']))), fields=['state', '-id'], name='contract_open'),
        ),
    ]
