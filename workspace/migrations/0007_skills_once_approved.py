"""A skill that was approved once needs approval for good, also after a withdrawal."""

from django.db import migrations, models
from django.db.models import Q


def mark(apps, _editor):
    apps.get_model("workspace", "Skill").objects.exclude(approved_digest="").update(
        was_approved=True
    )


class Migration(migrations.Migration):
    dependencies = [("workspace", "0006_run_commit")]

    operations = [
        migrations.AddField(
            model_name="skill",
            name="was_approved",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="skill",
            constraint=models.CheckConstraint(
                condition=Q(("approved_digest", ""), ("was_approved", True), _connector="OR"),
                name="skill_approved_was_approved",
            ),
        ),
    ]
