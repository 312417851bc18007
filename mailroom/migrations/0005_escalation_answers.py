"""Escalations: silence has its date, an answer its hand, every change its version."""

from django.db import migrations, models
from django.db.models import F, Q


def date_the_silences(apps, schema_editor):
    rows = apps.get_model("mailroom", "Escalation").objects.using(schema_editor.connection.alias)
    rows.filter(state="unanswered").update(
        unanswered_at=F("due_at"), answered_at=None, answered_by=""
    )


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0004_inbox_order")]

    operations = [
        migrations.AddField("escalation", "version", models.PositiveIntegerField(default=1)),
        migrations.AddField(
            "escalation", "unanswered_at", models.DateTimeField(null=True, blank=True)
        ),
        migrations.RunPython(date_the_silences, migrations.RunPython.noop),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AddConstraint(
            "escalation",
            models.CheckConstraint(
                condition=Q(state="open", unanswered_at=None)
                | Q(state="unanswered", unanswered_at__isnull=False)
                | Q(state__in=["answered", "passed_on"]),
                name="escalation_silence_is_dated",
            ),
        ),
        migrations.AddConstraint(
            "escalation",
            models.CheckConstraint(
                condition=Q(state__in=["open", "unanswered"], answered_at=None, answered_by="")
                | Q(state__in=["answered", "passed_on"], answered_at__isnull=False)
                & ~Q(answered_by=""),
                name="escalation_answer_has_a_hand",
            ),
        ),
    ]
