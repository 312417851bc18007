"""What was agreed stays as it was; a contract moves only along its states, version by version."""

from django.db import migrations

GUARD = """
CREATE FUNCTION contracts_contract_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a contract is closed, never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW IS NOT DISTINCT FROM OLD THEN
        RETURN NEW;
    END IF;
    IF OLD.state IN ('passed', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'a % contract is final', OLD.state USING ERRCODE = 'restrict_violation';
    END IF;
    IF (NEW.id, NEW.organisation_id, NEW.kind, NEW.assignee_id, NEW.title, NEW.body, NEW.priority,
        NEW.deadline, NEW.mode, NEW.workspace_scope, NEW.assigned_branch, NEW.grants,
        NEW.supersedes_id, NEW.environment, NEW.artifact, NEW.expires_at, NEW.amount, NEW.currency,
        NEW.notice_id, NEW.created_at)
       IS DISTINCT FROM
       (OLD.id, OLD.organisation_id, OLD.kind, OLD.assignee_id, OLD.title, OLD.body, OLD.priority,
        OLD.deadline, OLD.mode, OLD.workspace_scope, OLD.assigned_branch, OLD.grants,
        OLD.supersedes_id, OLD.environment, OLD.artifact, OLD.expires_at, OLD.amount, OLD.currency,
        OLD.notice_id, OLD.created_at)
    THEN
        RAISE EXCEPTION 'what a contract agreed does not change'
            USING ERRCODE = 'restrict_violation',
                  HINT = 'Cancel it and issue another that names it in supersedes.';
    END IF;
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'every change of a contract is its next version'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN
       ('pending>in_progress', 'in_progress>review', 'review>passed', 'review>failed',
        'pending>cancelled', 'in_progress>cancelled', 'review>cancelled')
    THEN
        RAISE EXCEPTION 'a contract does not go from % to %', OLD.state, NEW.state
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.used_at IS NOT NULL AND NEW.used_at IS DISTINCT FROM OLD.used_at THEN
        RAISE EXCEPTION 'an approval is used once' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER contracts_contract_agreed BEFORE UPDATE OR DELETE ON contracts_contract
    FOR EACH ROW EXECUTE FUNCTION contracts_contract_guard();

CREATE FUNCTION contracts_born_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'pending' OR NEW.version <> 1 OR NEW.used_at IS NOT NULL THEN
        RAISE EXCEPTION 'a contract begins pending, unused, at version 1'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER contracts_contract_born BEFORE INSERT ON contracts_contract
    FOR EACH ROW EXECUTE FUNCTION contracts_born_pending();

CREATE FUNCTION contracts_said_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is insert-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER contracts_report_stays BEFORE UPDATE OR DELETE ON contracts_report
    FOR EACH ROW EXECUTE FUNCTION contracts_said_stays();
CREATE TRIGGER contracts_verdict_stays BEFORE UPDATE OR DELETE ON contracts_verdict
    FOR EACH ROW EXECUTE FUNCTION contracts_said_stays();
"""

UNGUARD = """
DROP TRIGGER contracts_verdict_stays ON contracts_verdict;
DROP TRIGGER contracts_report_stays ON contracts_report;
DROP FUNCTION contracts_said_stays();
DROP TRIGGER contracts_contract_born ON contracts_contract;
DROP FUNCTION contracts_born_pending();
DROP TRIGGER contracts_contract_agreed ON contracts_contract;
DROP FUNCTION contracts_contract_guard();
"""


class Migration(migrations.Migration):
    """Triggers on the three tables; row by row, for they refuse changes, not the emptying of tests."""

    dependencies = [("contracts", "0001_tables")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]
