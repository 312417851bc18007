"""The code that a user of confirmed rights gets from the person who confirmed them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orgchart", "0008_saved_filters")]
    operations = [
        migrations.AddField(
            model_name="givenpassword",
            name="code_from",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddField(
            model_name="givenpassword",
            name="code_digest",
            field=models.CharField(blank=True, max_length=64),
        ),
    ]
