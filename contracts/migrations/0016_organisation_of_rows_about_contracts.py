"""Rows about a contract say whose they are, so that people list those of one organisation at once."""

import django.db.models.deletion
from django.db import migrations, models

FILL = """
UPDATE contracts_deadline r SET organisation_id = p.organisation_id
FROM contracts_contract p WHERE p.id = r.contract_id;
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE contracts_report DISABLE TRIGGER contracts_report_stays;
UPDATE contracts_report r SET organisation_id = p.organisation_id
FROM contracts_contract p WHERE p.id = r.contract_id;
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE contracts_report ENABLE TRIGGER contracts_report_stays;
ALTER TABLE contracts_verdict DISABLE TRIGGER contracts_verdict_stays;
UPDATE contracts_verdict r SET organisation_id = p.organisation_id
FROM contracts_contract p WHERE p.id = r.contract_id;
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE contracts_verdict ENABLE TRIGGER contracts_verdict_stays;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("contracts", "0015_branches_of_contracts"),
        ("orgchart", "0012_agents_that_left"),
    ]

    operations = [
        migrations.AddField(
            model_name="deadline",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddField(
            model_name="verdict",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="deadline",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AlterField(
            model_name="verdict",
            name="organisation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="orgchart.organisation",
            ),
        ),
        migrations.AddIndex(
            model_name="deadline",
            index=models.Index(fields=["organisation", "-id"], name="deadline_organisation"),
        ),
        migrations.AddIndex(
            model_name="report",
            index=models.Index(fields=["organisation", "-id"], name="report_organisation"),
        ),
        migrations.AddIndex(
            model_name="verdict",
            index=models.Index(fields=["organisation", "-id"], name="verdict_organisation"),
        ),
    ]
