from django.db import migrations

FORWARD = """
CREATE FUNCTION tasks_no_circle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7001, hashint8(NEW.organisation_id));
    IF (SELECT count(*) FROM tasks_task
        WHERE id IN (NEW.blocker_id, NEW.blocked_id)
          AND organisation_id = NEW.organisation_id) <> 2 THEN
        RAISE EXCEPTION 'a dependency joins two tasks of its own organisation'
            USING ERRCODE = '23514', CONSTRAINT = 'dependency_inside';
    END IF;
    IF EXISTS (
        WITH RECURSIVE after(id) AS (
            VALUES (NEW.blocked_id)
            UNION
            SELECT d.blocked_id FROM tasks_dependency d JOIN after a ON d.blocker_id = a.id
        )
        SELECT 1 FROM after WHERE id = NEW.blocker_id
    ) THEN
        RAISE EXCEPTION 'this dependency would close a circle'
            USING ERRCODE = '23514', CONSTRAINT = 'dependency_no_circle';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER dependency_no_circle BEFORE INSERT OR UPDATE ON tasks_dependency
    FOR EACH ROW EXECUTE FUNCTION tasks_no_circle();
"""

BACKWARD = """
DROP TRIGGER dependency_no_circle ON tasks_dependency;
DROP FUNCTION tasks_no_circle();
"""


class Migration(migrations.Migration):
    """No circle of dependencies, whoever writes and however many at once."""

    dependencies = [("tasks", "0001_tables")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
