from django.db import migrations, models


class Migration(migrations.Migration):
    """How many calls were taken, where the row said only whether one was."""

    dependencies = [("toolbox", "0014_stored")]

    operations = [
        migrations.AlterField(
            model_name="ratebucket",
            name="allowed",
            field=models.BooleanField(default=True),  # of the rows there are, when this is undone
        ),
        migrations.RemoveField(model_name="ratebucket", name="allowed"),
        migrations.AddField(
            model_name="ratebucket",
            name="taken",
            field=models.SmallIntegerField(default=1, verbose_name="calls counted last"),
            preserve_default=False,
        ),
    ]
