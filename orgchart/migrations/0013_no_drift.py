"""Authenticators whose earlier codes came late: the right ones are taken again (Spec: people 38)."""

from django.db import migrations

FORGET = "UPDATE otp_totp_totpdevice SET drift = 0 WHERE drift <> 0"


class Migration(migrations.Migration):
    dependencies = [
        ("orgchart", "0012_agents_that_left"),
        ("otp_totp", "0003_add_timestamps"),
    ]
    operations = [migrations.RunSQL(FORGET, migrations.RunSQL.noop)]
