"""Blocked mails of a time are found by their ids, which ascend with it, as other rows are."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0018_recipients_of_permissions")]

    operations = [migrations.RemoveIndex(model_name="mailrejection", name="rejection_time")]
