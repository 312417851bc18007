"""Pauses of agents and of organisations (Spec: people 39)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0005_given_passwords"),
    ]

    operations = [
        migrations.CreateModel(
            name="Pause",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.TextField()),
                ("paused_by", models.CharField(max_length=160)),
                ("paused_at", models.DateTimeField()),
                ("ended_by", models.CharField(blank=True, max_length=160)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("end_reason", models.TextField(blank=True)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pauses",
                        to="orgchart.agent",
                    ),
                ),
                (
                    "organisation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pauses",
                        to="orgchart.organisation",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("organisation", "agent"),
                        name="pause_open_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__regex", "\\S")), name="pause_reason_given"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None),
                            models.Q(
                                ("end_reason__regex", "\\S"),
                                models.Q(("ended_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="pause_ended_by_someone",
                    ),
                ],
            },
        ),
    ]
