import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    """Skills of the configured folders, and what people approved of them."""

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Skill',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('path', models.CharField(max_length=1024)),
                ('description', models.CharField(blank=True, max_length=1024)),
                ('text', models.TextField(blank=True)),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('allowed_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None)),
                ('commands', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('people_only', models.BooleanField(default=False)),
                ('problem', models.CharField(blank=True, max_length=500)),
                ('installed', models.BooleanField(default=True)),
                ('seen_at', models.DateTimeField()),
                ('approved_digest', models.CharField(blank=True, max_length=64)),
                ('approved_by', models.CharField(blank=True, max_length=100)),
                ('approved_at', models.DateTimeField(blank=True, null=True)),
                ('approval_reason', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('approved_at', None), ('approved_by', ''), ('approved_digest', '')), models.Q(models.Q(('approved_digest', ''), _negated=True), models.Q(('approved_by', ''), _negated=True), ('approved_at__isnull', False)), _connector='OR'), name='skill_approved_by_someone')],
            },
        ),
    ]
