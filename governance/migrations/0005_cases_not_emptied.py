"""TRUNCATE of cases is refused, as DELETE is (Spec: constitution 34)."""

from django.db import migrations

GUARD = """
CREATE FUNCTION governance_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is never emptied', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER governance_case_only_grows BEFORE TRUNCATE ON governance_case
    FOR EACH STATEMENT EXECUTE FUNCTION governance_refuse_truncate();
"""
UNGUARD = """
DROP TRIGGER governance_case_only_grows ON governance_case;
DROP FUNCTION governance_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0004_users_with_codes_stay")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
