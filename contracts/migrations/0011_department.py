"""Reports on a contract stay in one department, also when its parties move (Spec: files 13).

Of an open contract that exists already, in that of its first report.
"""

from django.db import migrations, models

FILL = """
ALTER TABLE contracts_contract DISABLE TRIGGER contracts_contract_agreed;
UPDATE contracts_contract c SET department = d.department
FROM contracts_report r JOIN documents_document d
    ON d.author_id = r.author_id AND d.created_at = r.created_at AND d.contract_ref = r.contract_id
WHERE c.state IN ('in_progress', 'review') AND d.kind = 'report' AND r.id =
    (SELECT min(id) FROM contracts_report WHERE contract_id = c.id);
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE contracts_contract ENABLE TRIGGER contracts_contract_agreed;
"""
GUARD = """
CREATE FUNCTION contracts_department_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'where reports on a contract are filed does not change'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER contracts_contract_department BEFORE UPDATE ON contracts_contract
    FOR EACH ROW WHEN (NEW.department IS DISTINCT FROM OLD.department)
    EXECUTE FUNCTION contracts_department_stays();
"""
BACK = """
DROP TRIGGER contracts_contract_department ON contracts_contract;
DROP FUNCTION contracts_department_stays();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("contracts", "0010_budget_names_its_request"),
        ("documents", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            "contract",
            "department",
            models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, BACK),
    ]
