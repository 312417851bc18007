"""Each agent's user number is counted by itself; what is rolled back uses none up."""

import django.db.models.deletion
from django.db import migrations, models

# Homes that there are keep their owners. Agents beyond the range had no home: they come after.
NUMBER = """
INSERT INTO workspace_usernumber (agent_id, number)
SELECT id, id FROM orgchart_agent WHERE id < 65536;
INSERT INTO workspace_usernumber (agent_id, number)
SELECT id, (SELECT coalesce(max(number), 0) FROM workspace_usernumber) + row_number() OVER (ORDER BY id)
FROM orgchart_agent WHERE id >= 65536;

CREATE FUNCTION workspace_number_agent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('user numbers', 0));
    INSERT INTO workspace_usernumber (agent_id, number)
    SELECT NEW.id, coalesce(max(number), 0) + 1 FROM workspace_usernumber;
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_agent_numbered AFTER INSERT ON orgchart_agent
    FOR EACH ROW EXECUTE FUNCTION workspace_number_agent();
"""

UNDO = """
DROP TRIGGER workspace_agent_numbered ON orgchart_agent;
DROP FUNCTION workspace_number_agent();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('orgchart', '0012_agents_that_left'),
        ('workspace', '0009_unknown_ends'),
    ]

    operations = [
        migrations.CreateModel(
            name='UserNumber',
            fields=[
                ('agent', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='orgchart.agent')),
                ('number', models.PositiveIntegerField(unique=True)),
            ],
        ),
        migrations.RunSQL(NUMBER, UNDO),
    ]
