"""Documents, memories and artifacts are not deleted."""

from django.db import migrations

TABLES = ("documents_document", "documents_memory", "documents_artifact")

FORWARD = """
CREATE FUNCTION documents_row_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are not deleted', TG_TABLE_NAME USING ERRCODE = '23001';
END $$;
""" + "".join(
    f"CREATE TRIGGER {table}_only_grows BEFORE DELETE OR TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION documents_row_is_kept();\n"
    for table in TABLES
)

BACKWARD = (
    "".join(f"DROP TRIGGER {table}_only_grows ON {table};\n" for table in TABLES)
    + "DROP FUNCTION documents_row_is_kept();"
)


class Migration(migrations.Migration):
    dependencies = [("documents", "0004_memories_stay")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
