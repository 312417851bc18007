from django.db import migrations


class Migration(migrations.Migration):
    """The table of runs is named for scheduled jobs."""

    dependencies = [("toolbox", "0006_wake_on_revocation")]

    operations = [migrations.RenameModel("ClockRun", "JobRun")]
