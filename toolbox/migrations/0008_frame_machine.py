import django_fsm
from django.db import migrations, models


class Migration(migrations.Migration):
    """Frames get a version and a state machine; a result is read, not told."""

    dependencies = [
        ('toolbox', '0007_job_runs'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='frame',
            name='frame_between_whom',
        ),
        migrations.RemoveConstraint(
            model_name='frame',
            name='frame_taken_by_someone',
        ),
        migrations.RemoveIndex(
            model_name='frame',
            name='frame_untold',
        ),
        migrations.RenameField(
            model_name='frame',
            old_name='told_at',
            new_name='result_read_at',
        ),
        migrations.AddField(
            model_name='frame',
            name='version',
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AlterField(
            model_name='frame',
            name='kind',
            field=models.CharField(choices=[('delegation', 'delegation'), ('skill', 'skill')], max_length=16),
        ),
        migrations.AlterField(
            model_name='frame',
            name='state',
            field=django_fsm.FSMField(choices=[('open', 'open'), ('taken', 'taken'), ('returned', 'returned'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='open', editable=False, max_length=16, protected=True),
        ),
        migrations.AddIndex(
            model_name='frame',
            index=models.Index(condition=models.Q(('kind', 'delegation'), ('result_read_at', None), ('state__in', ['returned', 'failed'])), fields=['opener', 'id'], name='frame_unread'),
        ),
        migrations.AddConstraint(
            model_name='frame',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('allowed_tools__isnull', False), ('kind', 'skill'), ('opener', models.F('assignee')), models.Q(('name', ''), _negated=True), models.Q(('state', 'open'), _negated=True)), models.Q(('kind', 'delegation'), ('name', ''), models.Q(('opener', models.F('assignee')), _negated=True)), _connector='OR'), name='frame_parties'),
        ),
        migrations.AddConstraint(
            model_name='frame',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['taken', 'returned']), _negated=True), ('taken_at__isnull', False), _connector='OR'), name='frame_taken_at_known'),
        ),
    ]
