"""The versions of an artifact, by its path: a mail attaches it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('documents', '0012_files_of_artifacts'),
        ('orgchart', '0012_agents_that_left'),
    ]

    operations = [
        migrations.AlterField(
            model_name='artifact',
            name='organisation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation'),
        ),
        migrations.AddIndex(
            model_name='artifact',
            index=models.Index(fields=['organisation', 'path', '-version'], name='artifact_path'),
        ),
    ]
