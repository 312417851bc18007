from django.db import migrations, models


class Migration(migrations.Migration):
    """A kept answer as the text that it was: jsonb orders names anew."""

    dependencies = [("toolbox", "0015_calls_counted_ahead")]

    operations = [
        migrations.AlterField(
            model_name="idempotencyrecord",
            name="answer",
            field=models.TextField(null=True),
        )
    ]
