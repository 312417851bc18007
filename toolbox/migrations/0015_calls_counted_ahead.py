from django.db import migrations, models


class Migration(migrations.Migration):
    """How many calls were taken, where the row said only whether one was. The table is unlogged."""

    dependencies = [("toolbox", "0014_stored")]

    operations = [
        migrations.RemoveField(model_name="ratebucket", name="allowed"),
        migrations.AddField(
            model_name="ratebucket",
            name="taken",
            field=models.SmallIntegerField(default=1, verbose_name="calls counted last"),
            preserve_default=False,
        ),
    ]
