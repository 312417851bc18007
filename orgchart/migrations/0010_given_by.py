"""Who chose a user's password, also after a change that may have been theirs (Spec: people 49)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orgchart", "0009_codes_of_confirmed_users")]
    operations = [
        migrations.AddField(
            model_name="givenpassword",
            name="given_by",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddField(
            model_name="givenpassword",
            name="is_changed",
            field=models.BooleanField(default=False),
        ),
    ]
