import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Memories of agents, groups and the organisation, and artifacts."""

    dependencies = [
        ('documents', '0002_documents_stay'),
        ('orgchart', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('version', models.PositiveIntegerField()),
                ('path', models.CharField(max_length=400)),
                ('description', models.CharField(blank=True, max_length=500)),
                ('content', models.TextField()),
                ('sha256', models.CharField(max_length=64)),
                ('frame_ref', models.CharField(blank=True, max_length=20)),
                ('created_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation')),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(fields=('agent', 'name', 'version'), name='artifact_once'), models.CheckConstraint(condition=models.Q(('sha256__regex', '^[0-9a-f]{64}$')), name='artifact_digest_form')],
            },
        ),
        migrations.CreateModel(
            name='Memory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope', models.CharField(choices=[('agent', 'Agent'), ('group', 'Group'), ('organisation', 'Organisation')], max_length=16)),
                ('text', models.TextField()),
                ('words', django.contrib.postgres.search.SearchVectorField()),
                ('created_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('author', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('group', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.group')),
                ('organisation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation')),
            ],
            options={
                'verbose_name_plural': 'memories',
                'ordering': ['-id'],
                'indexes': [models.Index(condition=models.Q(('scope', 'agent')), fields=['agent', '-id'], name='memory_agent'), models.Index(condition=models.Q(('scope', 'group')), fields=['group', '-id'], name='memory_group'), models.Index(condition=models.Q(('scope', 'organisation')), fields=['organisation', '-id'], name='memory_organisation'), django.contrib.postgres.indexes.GinIndex(fields=['words'], name='memory_words')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('agent__isnull', False), ('group__isnull', True), ('scope', 'agent')), models.Q(('agent__isnull', True), ('group__isnull', False), ('scope', 'group')), models.Q(('agent__isnull', True), ('group__isnull', True), ('scope', 'organisation')), _connector='OR'), name='memory_has_one_owner')],
            },
        ),
    ]
