"""Approvals fall due when their time runs out; the index holds only what is still open."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("contracts", "0004_answers")]

    operations = [
        migrations.AddIndex(
            "contract",
            models.Index(
                fields=["expires_at"],
                condition=Q(
                    kind="deployment_approval", state__in=["pending", "in_progress"], used_at=None
                ),
                name="contract_approval_due",
            ),
        ),
    ]
