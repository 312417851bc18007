"""An artifact says whether its file is there; everything else of it stays as it was."""

from django.db import migrations, models

FORWARD = """
ALTER TABLE documents_artifact DISABLE TRIGGER artifact_stays;
UPDATE documents_artifact SET filed_at = created_at;
SET CONSTRAINTS ALL IMMEDIATE;
DROP TRIGGER artifact_stays ON documents_artifact;
CREATE FUNCTION documents_artifact_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.filed_at = OLD.filed_at;
    IF NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION '% is only added to', TG_TABLE_NAME USING ERRCODE = '23001';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER artifact_stays AFTER UPDATE ON documents_artifact
    FOR EACH ROW EXECUTE FUNCTION documents_artifact_stays();
"""
BACKWARD = """
DROP TRIGGER artifact_stays ON documents_artifact;
DROP FUNCTION documents_artifact_stays();
CREATE TRIGGER artifact_stays BEFORE UPDATE ON documents_artifact
    FOR EACH ROW EXECUTE FUNCTION documents_memory_stays();
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0011_authors_of_memories")]

    operations = [
        migrations.AddField(
            model_name="artifact",
            name="filed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
        migrations.AddIndex(
            model_name="artifact",
            index=models.Index(
                condition=models.Q(("filed_at", None)),
                fields=["created_at"],
                name="artifact_unfiled",
            ),
        ),
    ]
