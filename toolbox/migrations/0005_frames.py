
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orgchart', '0001_tables'),
        ('toolbox', '0004_clock_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='Frame',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('delegation', 'Delegation'), ('skill', 'Skill')], max_length=16)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('depth', models.PositiveSmallIntegerField()),
                ('instruction', models.TextField()),
                ('context', models.JSONField(null=True)),
                ('allowed_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), null=True, size=None)),
                ('state', models.CharField(choices=[('open', 'Open'), ('taken', 'Taken'), ('returned', 'Returned'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='open', editable=False, max_length=16)),
                ('result', models.JSONField(null=True)),
                ('reason', models.TextField(blank=True)),
                ('opened_at', models.DateTimeField()),
                ('due_at', models.DateTimeField()),
                ('taken_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('assignee', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('opener', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='orgchart.agent')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.organisation')),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='toolbox.frame')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(condition=models.Q(('state', 'open')), fields=['assignee', 'id'], name='frame_waiting'), models.Index(condition=models.Q(('kind', 'delegation'), ('state__in', ['returned', 'failed']), ('told_at', None)), fields=['opener', 'id'], name='frame_untold'), models.Index(condition=models.Q(('state__in', ['open', 'taken'])), fields=['due_at'], name='frame_due'), models.Index(fields=['organisation', '-id'], name='frame_organisation')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['open', 'taken', 'returned', 'failed', 'cancelled'])), name='frame_state_known'), models.CheckConstraint(condition=models.Q(('kind__in', ['delegation', 'skill'])), name='frame_kind_known'), models.CheckConstraint(condition=models.Q(('depth__gte', 1), ('depth__lte', 8)), name='frame_depth_limit'), models.CheckConstraint(condition=models.Q(models.Q(('depth', 1), ('parent__isnull', True)), models.Q(('depth__gte', 2), ('parent__isnull', False)), _connector='OR'), name='frame_depth_counts'), models.CheckConstraint(condition=models.Q(models.Q(('allowed_tools__isnull', False), ('kind', 'skill'), ('opener', models.F('assignee')), models.Q(('name', ''), _negated=True), models.Q(('state', 'open'), _negated=True)), models.Q(('kind', 'delegation'), ('name', ''), models.Q(('opener', models.F('assignee')), _negated=True)), _connector='OR'), name='frame_between_whom'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('state__in', ['open', 'taken'])), models.Q(('ended_at__isnull', False), ('state__in', ['returned', 'failed', 'cancelled'])), _connector='OR'), name='frame_ends_once'), models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['taken', 'returned']), _negated=True), ('taken_at__isnull', False), _connector='OR'), name='frame_taken_by_someone')],
            },
        ),
        migrations.AddField(
            model_name='session',
            name='frame',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sessions', to='toolbox.frame'),
        ),
    ]
