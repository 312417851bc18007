import django.db.models.deletion
import django_fsm
import workspace.builds.vocabulary
from django.db import migrations, models


class Migration(migrations.Migration):
    """Images that were built, and deployments as a state machine."""

    dependencies = [
        ('contracts', '0006_one_authority'),
        ('orgchart', '0003_pending_change'),
        ('workspace', '0003_git'),
    ]

    operations = [
        migrations.CreateModel(
            name='Deployment',
            fields=[
                ('id', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('environment', models.CharField(max_length=63)),
                ('service', models.CharField(max_length=100)),
                ('artifact', models.CharField(max_length=255)),
                ('state', django_fsm.FSMField(choices=[('started', 'started'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('unknown', 'unknown')], default=workspace.builds.vocabulary.DeploymentState['STARTED'], max_length=16, protected=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('problem', models.TextField(blank=True)),
                ('started_at', models.DateTimeField()),
                ('due_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('approval', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deployment', to='contracts.contract')),
                ('deployed_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('organisation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['organisation', 'service', 'environment', '-id'], name='deployment_service'), models.Index(condition=models.Q(('state', 'started')), fields=['due_at'], name='deployment_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'started')), fields=('organisation', 'environment', 'service'), name='deployment_one_at_a_time'), models.CheckConstraint(condition=models.Q(('state__in', ['started', 'succeeded', 'failed', 'unknown'])), name='deployment_state_known'), models.CheckConstraint(condition=models.Q(('environment__in', ['dev', 'development', 'staging', 'test', 'testing']), ('approval__isnull', False), _connector='OR'), name='deployment_has_an_approval'), models.CheckConstraint(condition=models.Q(models.Q(('settled_at', None), ('state', 'started')), models.Q(models.Q(('state', 'started'), _negated=True), ('settled_at__isnull', False)), _connector='OR'), name='deployment_ends_once'), models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='deployment_version_from_1')],
            },
        ),
        migrations.CreateModel(
            name='ImageBuild',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=80)),
                ('service', models.CharField(max_length=100)),
                ('tag', models.CharField(max_length=255)),
                ('path', models.CharField(max_length=1024)),
                ('contract_ref', models.CharField(blank=True, max_length=32)),
                ('built_at', models.DateTimeField()),
                ('built_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('organisation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['organisation', 'digest', '-id'], name='image_by_digest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('digest__regex', '^sha256:[0-9a-f]{64}$')), name='image_has_a_digest')],
            },
        ),
    ]
