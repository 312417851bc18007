"""The five statuses of a mail; a delivery still writes `delivered` at once."""

from django.db import migrations, models
from django.db.models import Q
from django_fsm import FSMField

STATUSES = ("sent", "delivered", "read", "failed", "rejected")


def known(statuses):
    return models.CheckConstraint(condition=Q(status__in=statuses), name="mail_status_known")


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0007_versions")]

    operations = [
        migrations.RemoveConstraint("mail", "mail_status_known"),
        migrations.AlterField(
            "mail",
            "status",
            FSMField(
                choices=[(each, each) for each in STATUSES],
                default="sent",
                max_length=16,
                protected=True,
            ),
        ),
        migrations.AddConstraint("mail", known(STATUSES)),
    ]
