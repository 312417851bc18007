"""Memories by who wrote them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('documents', '0010_authors_of_documents'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(fields=['author', '-id'], name='memory_author'),
        ),
    ]
