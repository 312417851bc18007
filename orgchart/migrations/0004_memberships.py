"""People belong to organisations; those who are here already keep seeing every one."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def keep_everybody(apps, _schema_editor):
    """What people saw before this migration they see after it, until a person changes it."""
    users = apps.get_model(settings.AUTH_USER_MODEL).objects.order_by("pk")
    membership = apps.get_model("orgchart", "Membership")
    membership.objects.bulk_create(
        membership(person_id=pk, added_by="system:migrate")
        for pk in users.values_list("pk", flat=True)
    )


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0003_pending_change"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                ("added_by", models.CharField(max_length=200)),
                (
                    "organisation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="orgchart.organisation",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "organisation"), name="member_once", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.RunPython(keep_everybody, migrations.RunPython.noop),
    ]
