"""Refuse a time that Python cannot read; the rows that are there are left to `ledger verify`."""

from datetime import UTC, datetime

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

IN_CALENDAR = models.Q(
    at__range=(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0004_stream_by_era")]
    operations = [
        AddConstraintNotValid(
            model_name=model,
            constraint=models.CheckConstraint(
                condition=IN_CALENDAR, name=f"ledger_{model}_in_the_calendar"
            ),
        )
        for model in ("event", "seal")
    ]
