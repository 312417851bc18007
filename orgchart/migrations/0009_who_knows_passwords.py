"""Who may know a user's password, and the code for a user whose rights were confirmed.

Spec: people 48, people 49.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orgchart", "0008_saved_filters")]
    operations = [
        migrations.AddField("givenpassword", name, field)
        for name, field in (
            ("code_from", models.CharField(blank=True, max_length=150)),
            ("code_digest", models.CharField(blank=True, max_length=64)),
            ("given_by", models.CharField(blank=True, max_length=150)),
            ("is_changed", models.BooleanField(default=False)),
        )
    ]
