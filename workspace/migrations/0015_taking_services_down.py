"""People take services down; an earlier version knows such deployments as failed."""

from django.db import migrations, models
from django_fsm import FSMField

STATES = ["started", "succeeded", "failed", "unknown", "removed"]
AS_FAILED = "UPDATE workspace_deployment SET state = 'failed' WHERE state = 'removed'"


class Migration(migrations.Migration):
    dependencies = [("workspace", "0014_organisation_of_branch_moves")]

    operations = [
        migrations.RemoveConstraint(model_name="deployment", name="deployment_state_known"),
        migrations.RunSQL(migrations.RunSQL.noop, AS_FAILED),
        migrations.AlterField(
            model_name="deployment",
            name="state",
            field=FSMField(
                choices=[(state, state) for state in STATES],
                default="started",
                max_length=16,
                protected=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="deployment",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", STATES)), name="deployment_state_known"
            ),
        ),
    ]
