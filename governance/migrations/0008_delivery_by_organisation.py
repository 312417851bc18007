"""The inputs of a delivered case are found by the index that begins with its organisation."""

from django.db import migrations

HOLDS = """
CREATE OR REPLACE FUNCTION governance_case_holds() RETURNS trigger LANGUAGE plpgsql AS $$
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
        EXISTS (SELECT 1 FROM governance_artifact WHERE {of_case} AND round = NEW.round
                AND stage = 'REVIEW' AND revision = 0)
        AND 'APPROVED' = (SELECT outcome FROM governance_artifact WHERE {of_case}
                AND round = NEW.round AND stage = 'REVIEW' ORDER BY revision DESC LIMIT 1)
        AND EXISTS (SELECT 1 FROM governance_artifact WHERE {of_case} AND round = NEW.round
                AND stage = 'TEST' AND outcome = 'PASSED' AND jsonb_array_length(evidence) > 0)
    ) THEN
        RAISE EXCEPTION 'a delivery needs REVIEW approved and TEST passed in its round'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""
OF_CASE = "case_id = NEW.id"
OF_ORGANISATION = f"organisation_id = NEW.organisation_id AND {OF_CASE}"


class Migration(migrations.Migration):

    dependencies = [("governance", "0007_unended_cases")]

    operations = [
        migrations.RunSQL(HOLDS.format(of_case=OF_ORGANISATION), HOLDS.format(of_case=OF_CASE))
    ]
