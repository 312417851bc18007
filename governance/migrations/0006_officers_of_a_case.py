"""Keep which agent acts in which office of a case, also who only read or ruled
(Spec: constitution 37).

Of cases before it: who opened them, who submitted, and who ruled as the ledger names them; of an
agent that acted in two offices the first. Who only read is not known by office.
"""

import django.db.models.deletion
from django.db import migrations, models

EARLIER = """
INSERT INTO governance_caseofficer (organisation_id, case_id, agent_id, office, since)
SELECT DISTINCT ON (organisation_id, case_id, agent_id)
       organisation_id, case_id, agent_id, office, since
FROM (
    SELECT organisation_id, id AS case_id, opened_by_id AS agent_id, 'ANALYST' AS office,
           opened_at AS since
    FROM governance_case WHERE opened_by_id IS NOT NULL
    UNION ALL
    SELECT organisation_id, case_id, author_id,
           CASE stage WHEN 'ANALYSIS' THEN 'ANALYST' WHEN 'TASKS' THEN 'PLANNER'
                      WHEN 'IMPLEMENTATION' THEN 'IMPLEMENTER' WHEN 'REVIEW' THEN 'REVIEWER'
                      WHEN 'TEST' THEN 'TESTER' END,
           created_at
    FROM governance_artifact WHERE author_id IS NOT NULL
    UNION ALL
    SELECT held.organisation_id, held.id, agent.id, 'CONDUCTOR', event.at
    FROM governance_case AS held
    JOIN ledger_event AS event ON event.subject = 'case:' || held.id
     AND event.organisation_id = held.organisation_id
     AND event.action = 'case.decided' AND event.decision = 'allow'
    JOIN orgchart_agent AS agent ON agent.organisation_id = held.organisation_id
     AND event.actor = 'agent:' || agent.handle
) AS acted
ORDER BY organisation_id, case_id, agent_id, since
"""
GUARD = """
CREATE TRIGGER governance_caseofficer_only_grows
    BEFORE UPDATE OR DELETE OR TRUNCATE ON governance_caseofficer
    FOR EACH STATEMENT EXECUTE FUNCTION governance_refuse_change()
"""
OFFICES = ["ANALYST", "PLANNER", "IMPLEMENTER", "REVIEWER", "TESTER", "CONDUCTOR"]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0005_cases_not_emptied"),
        ("ledger", "0001_events_and_seals"),
        ("orgchart", "0001_tables"),
    ]
    operations = [
        migrations.CreateModel(
            name="CaseOfficer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "office",
                    models.CharField(choices=[(o, o) for o in OFFICES], max_length=16),
                ),
                ("since", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orgchart.agent",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="officers",
                        to="governance.case",
                    ),
                ),
                (
                    "organisation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="orgchart.organisation",
                    ),
                ),
            ],
            options={
                "ordering": ["case", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organisation", "case", "agent"), name="case_officer_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("office__in", OFFICES)), name="case_officer_known"
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            GUARD, "DROP TRIGGER governance_caseofficer_only_grows ON governance_caseofficer"
        ),
        migrations.RunSQL(EARLIER, migrations.RunSQL.noop),
    ]
