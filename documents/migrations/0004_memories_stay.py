from django.db import migrations

FORWARD = """
CREATE FUNCTION documents_memory_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is only added to', TG_TABLE_NAME USING ERRCODE = '23001';
END $$;
CREATE TRIGGER memory_stays BEFORE UPDATE ON documents_memory
    FOR EACH ROW EXECUTE FUNCTION documents_memory_stays();
CREATE TRIGGER artifact_stays BEFORE UPDATE ON documents_artifact
    FOR EACH ROW EXECUTE FUNCTION documents_memory_stays();
"""

BACKWARD = """
DROP TRIGGER memory_stays ON documents_memory;
DROP TRIGGER artifact_stays ON documents_artifact;
DROP FUNCTION documents_memory_stays();
"""


class Migration(migrations.Migration):
    """What was remembered or saved stays as it was."""

    dependencies = [("documents", "0003_memories")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
