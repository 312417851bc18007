import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Searches and pages of each agent and day."""

    dependencies = [
        ('orgchart', '0003_pending_change'),
        ('workspace', '0001_skills'),
    ]

    operations = [
        migrations.CreateModel(
            name='WebUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('calls', models.PositiveIntegerField()),
                ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='orgchart.agent')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('agent', 'day'), name='web_use_day_once')],
            },
        ),
    ]
