"""Mails and notices have a version; a mail is delivered when it is inserted, and then read."""

from django.db import migrations, models
from django.db.models import Q
from django_fsm import FSMField


def state(states, **options):
    return FSMField(
        choices=[(each, each.replace("_", " ")) for each in states],
        default=states[0],
        protected=True,
        **options,
    )


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0006_board_could_not_be_told")]

    operations = [
        migrations.AddField(
            "mail", "version", models.PositiveSmallIntegerField(default=1, db_default=1)
        ),
        migrations.AddField(
            "outgoingnotice", "version", models.PositiveIntegerField(default=1, db_default=1)
        ),
        migrations.RemoveConstraint("mail", "mail_status_known"),
        migrations.AlterField("mail", "status", state(["delivered", "read"], max_length=16)),
        migrations.AddConstraint(
            "mail",
            models.CheckConstraint(
                condition=Q(status__in=["delivered", "read"]), name="mail_status_known"
            ),
        ),
        migrations.AlterField(
            "escalation",
            "state",
            state(["open", "answered", "passed_on", "unanswered"], max_length=16),
        ),
        migrations.AlterField(
            "outgoingnotice", "state", state(["pending", "sent", "dead"], max_length=8)
        ),
    ]
