from django.db import migrations

FORWARD = """
CREATE FUNCTION toolbox_agent_paused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', coalesce(NEW.agent_id::text, '*'));
    RETURN NULL;
END $$;
CREATE TRIGGER toolbox_agent_paused AFTER INSERT OR UPDATE OF ended_at ON orgchart_pause
    FOR EACH ROW EXECUTE FUNCTION toolbox_agent_paused();
"""

BACKWARD = """
DROP TRIGGER toolbox_agent_paused ON orgchart_pause;
DROP FUNCTION toolbox_agent_paused();
"""


class Migration(migrations.Migration):
    """A paused agent's calls that wait, and its open streams, look again and end."""

    dependencies = [("toolbox", "0011_usage"), ("orgchart", "0006_pause")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
