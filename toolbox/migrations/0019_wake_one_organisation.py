from django.db import migrations

FORWARD = """
CREATE OR REPLACE FUNCTION toolbox_policy_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', 'o' || NEW.id);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION toolbox_agent_paused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', coalesce(NEW.agent_id::text, 'o' || NEW.organisation_id));
    RETURN NULL;
END $$;
"""

BACKWARD = """
CREATE OR REPLACE FUNCTION toolbox_policy_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', '*');
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION toolbox_agent_paused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('nexus_wake', coalesce(NEW.agent_id::text, '*'));
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    """A change of one organisation makes no other one's agents look again."""

    dependencies = [("toolbox", "0018_people_look_at_frames")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
