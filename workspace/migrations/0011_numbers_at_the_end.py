"""Each agent's user number is counted at the end of the change that hires it.

The agents of all organisations are counted one after the other: none of them waits for what is
decided on another organisation's policy.
"""

from django.db import migrations

DEFERRED = """
CREATE OR REPLACE FUNCTION workspace_number_agent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('user numbers', 0));
    INSERT INTO workspace_usernumber (agent_id, number)
    SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM workspace_usernumber)
    FROM orgchart_agent WHERE id = NEW.id  -- by then it may be gone, or numbered
    ON CONFLICT (agent_id) DO NOTHING;
    RETURN NULL;
END $$;
DROP TRIGGER workspace_agent_numbered ON orgchart_agent;
CREATE CONSTRAINT TRIGGER workspace_agent_numbered AFTER INSERT ON orgchart_agent
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION workspace_number_agent();
"""

AT_ONCE = """
DROP TRIGGER workspace_agent_numbered ON orgchart_agent;
CREATE TRIGGER workspace_agent_numbered AFTER INSERT ON orgchart_agent
    FOR EACH ROW EXECUTE FUNCTION workspace_number_agent();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('workspace', '0010_user_numbers'),
    ]

    operations = [
        migrations.RunSQL(DEFERRED, AT_ONCE),
    ]
