"""TRUNCATE, which passes row triggers by, is refused like UPDATE and DELETE (Spec: contracts 50)."""

from django.db import migrations

TABLES = ("contract", "report", "verdict", "orgchangeline")
GUARD = """
CREATE FUNCTION contracts_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is never emptied', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
""" + "".join(
    f"CREATE TRIGGER contracts_{table}_only_grows BEFORE TRUNCATE ON contracts_{table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION contracts_refuse_truncate();\n"
    for table in TABLES
)
UNGUARD = (
    "".join(f"DROP TRIGGER contracts_{t}_only_grows ON contracts_{t};\n" for t in TABLES)
    + "DROP FUNCTION contracts_refuse_truncate();"
)


class Migration(migrations.Migration):
    dependencies = [("contracts", "0007_commits_of_verdicts")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
