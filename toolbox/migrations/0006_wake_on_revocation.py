from django.db import migrations

FORWARD = """
CREATE FUNCTION toolbox_key_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', NEW.agent_id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER toolbox_key_revoked AFTER UPDATE OF revoked_at ON orgchart_apikey
    FOR EACH ROW WHEN (NEW.revoked_at IS NOT NULL AND OLD.revoked_at IS NULL)
    EXECUTE FUNCTION toolbox_key_revoked();
"""

BACKWARD = """
DROP TRIGGER toolbox_key_revoked ON orgchart_apikey;
DROP FUNCTION toolbox_key_revoked();
"""


class Migration(migrations.Migration):
    """Who watches or waits with a key looks again when it is revoked: its stream ends then."""

    dependencies = [("toolbox", "0005_frames"), ("orgchart", "0001_tables")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
