from django.db import migrations

FORWARD = """
CREATE FUNCTION toolbox_policy_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', '*');
    RETURN NULL;
END $$;
CREATE TRIGGER toolbox_policy_changed AFTER UPDATE OF policy_version ON orgchart_organisation
    FOR EACH ROW WHEN (NEW.policy_version <> OLD.policy_version)
    EXECUTE FUNCTION toolbox_policy_changed();
"""

BACKWARD = """
DROP TRIGGER toolbox_policy_changed ON orgchart_organisation;
DROP FUNCTION toolbox_policy_changed();
"""


class Migration(migrations.Migration):
    """Who watches its tools is told when an organisation's policy changes."""

    dependencies = [("toolbox", "0002_rate_buckets_unlogged"), ("orgchart", "0001_tables")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
