"""People list the rows of one organisation newest first, however many the others have."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mailroom", "0019_no_index_of_blocked_mails_by_time"),
        ("orgchart", "0012_agents_that_left"),
    ]

    operations = [
        migrations.AlterField(
            model_name="contactgrant",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AlterField(
            model_name="escalation",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AlterField(
            model_name="outgoingnotice",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="contactgrant",
            index=models.Index(fields=["organisation", "-id"], name="grant_organisation"),
        ),
        migrations.AddIndex(
            model_name="escalation",
            index=models.Index(fields=["organisation", "-id"], name="escalation_organisation"),
        ),
        migrations.AddIndex(
            model_name="outgoingnotice",
            index=models.Index(fields=["organisation", "-id"], name="notice_organisation"),
        ),
    ]
