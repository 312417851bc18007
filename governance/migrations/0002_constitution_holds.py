"""Make the database hold the constitution: what was submitted stays, nothing is delivered without
REVIEW approved and TEST passed with evidence in the same round."""

from django.db import migrations

ONLY_GROWS = """
CREATE FUNCTION governance_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END $$
"""
GUARD = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION governance_refuse_change()
"""
TABLES = (
    "governance_artifact",
    "governance_violation",
    "governance_intervention",
    "governance_codeattempt",
)

CASE = """
CREATE FUNCTION governance_case_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a case stays' USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state IN ('delivered', 'stopped') THEN
        RAISE EXCEPTION 'a case that has ended does not change'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF (NEW.id, NEW.organisation_id, NEW.title, NEW.request, NEW.request_sha256, NEW.opened_by_id,
        NEW.opened_by_name, NEW.opened_at)
       IS DISTINCT FROM
       (OLD.id, OLD.organisation_id, OLD.title, OLD.request, OLD.request_sha256, OLD.opened_by_id,
        OLD.opened_by_name, OLD.opened_at)
    THEN
        RAISE EXCEPTION 'the request of a case does not change'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.state = 'delivered' AND NOT (
        EXISTS (SELECT 1 FROM governance_artifact WHERE case_id = NEW.id AND round = NEW.round
                AND stage = 'REVIEW' AND revision = 0)
        AND 'APPROVED' = (SELECT outcome FROM governance_artifact WHERE case_id = NEW.id
                AND round = NEW.round AND stage = 'REVIEW' ORDER BY revision DESC LIMIT 1)
        AND EXISTS (SELECT 1 FROM governance_artifact WHERE case_id = NEW.id AND round = NEW.round
                AND stage = 'TEST' AND outcome = 'PASSED' AND jsonb_array_length(evidence) > 0)
    ) THEN
        RAISE EXCEPTION 'a delivery needs REVIEW approved and TEST passed in its round'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER governance_case_holds BEFORE UPDATE OR DELETE ON governance_case
    FOR EACH ROW EXECUTE FUNCTION governance_case_holds();
CREATE FUNCTION governance_case_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.state, NEW.stage, NEW.round, NEW.version) IS DISTINCT FROM
       ('open'::varchar, 'ANALYSIS'::varchar, 1, 1) THEN
        RAISE EXCEPTION 'a case begins with its ANALYSIS' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER governance_case_begins BEFORE INSERT ON governance_case
    FOR EACH ROW EXECUTE FUNCTION governance_case_begins();
"""
NO_CASE = """
DROP TRIGGER governance_case_begins ON governance_case;
DROP FUNCTION governance_case_begins();
DROP TRIGGER governance_case_holds ON governance_case;
DROP FUNCTION governance_case_holds();
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0001_tables")]
    operations = [
        migrations.RunSQL(ONLY_GROWS, "DROP FUNCTION governance_refuse_change()"),
        *(
            migrations.RunSQL(
                GUARD.format(table=table), f"DROP TRIGGER {table}_only_grows ON {table}"
            )
            for table in TABLES
        ),
        migrations.RunSQL(CASE, NO_CASE),
    ]
