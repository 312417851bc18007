"""A sender finds the first due notice of each organisation and channel by an index."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0021_first_due_notices")]

    operations = [
        migrations.AddIndex(
            model_name="outgoingnotice",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["organisation", "channel", "due_at"],
                name="notice_due_of_channel",
            ),
        ),
        migrations.RemoveIndex(model_name="outgoingnotice", name="notice_due_first"),
    ]
