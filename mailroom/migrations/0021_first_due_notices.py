"""A sender finds the first due notice of each organisation, however many one organisation has."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0020_rows_of_one_organisation")]

    operations = [
        migrations.AddIndex(
            model_name="outgoingnotice",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["organisation", "due_at"],
                name="notice_due_first",
            ),
        ),
        migrations.RemoveIndex(model_name="outgoingnotice", name="notice_due"),
    ]
