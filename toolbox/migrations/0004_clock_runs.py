from django.db import migrations, models


class Migration(migrations.Migration):
    """When each clock was last looked at."""

    dependencies = [("toolbox", "0003_wake_on_policy_change")]

    operations = [
        migrations.CreateModel(
            name="ClockRun",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("last_at", models.DateTimeField()),
                ("last_seconds", models.FloatField(default=0)),
                ("last_rows", models.PositiveBigIntegerField(default=0)),
                ("last_problem", models.CharField(blank=True, max_length=500)),
                ("rows", models.PositiveBigIntegerField(default=0)),
                ("runs", models.PositiveBigIntegerField(default=0)),
            ],
            options={"ordering": ["name"]},
        ),
    ]
