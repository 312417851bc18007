"""How a notice is worded, so that an e-mail can be in the installation's language."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0013_lists_at_ten_million")]

    operations = [
        migrations.AddField(
            "outgoingnotice",
            "wording",
            models.JSONField(default=dict, db_default={}),
        ),
    ]
