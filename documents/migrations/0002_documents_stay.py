from django.db import migrations

FORWARD = """
CREATE FUNCTION documents_document_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.filed_at = OLD.filed_at;
    IF NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'a document does not change' USING ERRCODE = '23001';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER document_stays AFTER UPDATE ON documents_document
    FOR EACH ROW EXECUTE FUNCTION documents_document_stays();
"""

BACKWARD = """
DROP TRIGGER document_stays ON documents_document;
DROP FUNCTION documents_document_stays();
"""


class Migration(migrations.Migration):
    """What was written stays as it was; only whether its file is there may be noted."""

    dependencies = [("documents", "0001_tables")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
