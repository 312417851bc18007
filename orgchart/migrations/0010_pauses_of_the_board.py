"""Whether the Board paused: who did may leave it later. A pause from before counts as the Board's.

Spec: people 39.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orgchart", "0009_who_knows_passwords")]
    operations = [migrations.AddField("pause", "by_board", models.BooleanField(default=True))]
