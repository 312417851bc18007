"""Each agent's user number is counted at the end of the change that hires it.

The agents of all organisations are counted one after the other: none of them waits for what is
decided on another organisation's policy.
"""

from django.db import migrations

DEFERRED = """
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
