from django.db import migrations

BEFORE = """
CREATE OR REPLACE FUNCTION tasks_no_circle() RETURNS trigger LANGUAGE plpgsql AS $$
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
"""
# A task that blocks nothing closes no circle: one look at an index instead of a walk, whose plan
# reads the whole table. An import of a chain inserts only such dependencies.
FORWARD = """
CREATE OR REPLACE FUNCTION tasks_no_circle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7001, hashint8(NEW.organisation_id));
    IF (SELECT count(*) FROM tasks_task
        WHERE id IN (NEW.blocker_id, NEW.blocked_id)
          AND organisation_id = NEW.organisation_id) <> 2 THEN
        RAISE EXCEPTION 'a dependency joins two tasks of its own organisation'
            USING ERRCODE = '23514', CONSTRAINT = 'dependency_inside';
    END IF;
    IF NEW.blocked_id <> NEW.blocker_id AND NOT EXISTS (
        SELECT FROM tasks_dependency WHERE blocker_id = NEW.blocked_id
    ) THEN
        RETURN NEW;
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
"""


class Migration(migrations.Migration):
    """Look for a circle only where the blocked task blocks another one."""

    dependencies = [("tasks", "0009_lists_at_ten_million")]

    operations = [migrations.RunSQL(FORWARD, BEFORE)]
