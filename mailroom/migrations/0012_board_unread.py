"""An index of the mail that the Board has not read yet."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0011_one_open_thread")]

    operations = [
        migrations.AddIndex(
            "mail",
            models.Index(
                fields=["organisation", "id"],
                condition=Q(recipient=None, read_at=None),
                name="mail_board_unread",
            ),
        ),
    ]
