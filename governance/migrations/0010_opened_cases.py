"""The newest cases of an opener."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0009_rows_of_one_organisation"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="case",
            index=models.Index(
                fields=["opened_by", "-opened_at"],
                condition=models.Q(opened_by__isnull=False),
                name="case_opened",
            ),
        ),
    ]
