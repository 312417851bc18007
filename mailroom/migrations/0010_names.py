"""Names of tables as people read them."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0009_mails_stay")]

    operations = [
        migrations.AlterModelOptions(
            "mailrejection", {"ordering": ["-id"], "verbose_name": "blocked mail"}
        ),
        migrations.AlterModelOptions(
            "contactgrant",
            {"ordering": ["-opened_at"], "verbose_name": "temporary contact permission"},
        ),
        migrations.AlterModelOptions("outgoingnotice", {"ordering": ["-id"], "verbose_name": "notice"}),
    ]
