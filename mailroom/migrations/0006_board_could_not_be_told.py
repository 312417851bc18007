"""Escalations: that the Board should be told, and could not be, is kept until it can."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0005_escalation_answers")]

    operations = [
        migrations.AddField(
            "escalation", "board_waits_since", models.DateTimeField(null=True, blank=True)
        ),
        migrations.AddIndex(
            "escalation",
            models.Index(
                fields=["organisation"],
                condition=Q(board_waits_since__isnull=False),
                name="escalation_board_waits",
            ),
        ),
    ]
