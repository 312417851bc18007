from django.db import migrations

# The new dependencies are taken in the order of their ids. One whose blocked task blocked nothing
# before it closes no circle, so the last one of a circle is among the others: one walk ahead from
# all of these settles most statements, and each blocker that it meets is settled by one walk back.
# OFFSET keeps a step at one look into an index; a plan for all of them reads the whole table.
FORWARD = """
CREATE FUNCTION tasks_no_circle_among() RETURNS trigger
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    organisation bigint;
    suspect bigint;
    closing bigint;
BEGIN
    FOR organisation IN SELECT DISTINCT organisation_id FROM added ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(7001, hashint8(organisation));
    END LOOP;
    IF EXISTS (
        SELECT FROM added n
        WHERE n.organisation_id <> (SELECT organisation_id FROM tasks_task WHERE id = n.blocker_id)
           OR n.organisation_id <> (SELECT organisation_id FROM tasks_task WHERE id = n.blocked_id)
    ) THEN
        RAISE EXCEPTION 'a dependency joins two tasks of its own organisation'
            USING ERRCODE = '23514', CONSTRAINT = 'dependency_inside';
    END IF;
    FOR suspect IN
        WITH RECURSIVE unsettled AS MATERIALIZED (
            SELECT n.blocker_id, n.blocked_id FROM added n WHERE EXISTS (
                SELECT FROM tasks_dependency d WHERE d.blocker_id = n.blocked_id
                AND NOT EXISTS (SELECT FROM added later WHERE later.id = d.id AND later.id > n.id)
                OFFSET 0
            )
        ), ahead(id) AS (
            SELECT blocked_id FROM unsettled
            UNION
            SELECT step.blocked_id FROM ahead CROSS JOIN LATERAL (
                SELECT d.blocked_id FROM tasks_dependency d
                WHERE d.blocker_id = ahead.id OFFSET 0
            ) step
        )
        SELECT DISTINCT u.blocker_id FROM unsettled u JOIN ahead ON ahead.id = u.blocker_id
    LOOP
        WITH RECURSIVE behind(id) AS (
            VALUES (suspect)
            UNION
            SELECT step.blocker_id FROM behind CROSS JOIN LATERAL (
                SELECT d.blocker_id FROM tasks_dependency d
                WHERE d.blocked_id = behind.id OFFSET 0
            ) step
        )
        SELECT min(n.blocked_id) INTO closing FROM added n JOIN behind ON behind.id = n.blocked_id
        WHERE n.blocker_id = suspect;
        IF closing IS NOT NULL THEN
            RAISE EXCEPTION 'this dependency would close a circle'
                USING ERRCODE = '23514', CONSTRAINT = 'dependency_no_circle',
                DETAIL = json_build_array(suspect, closing);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
DROP TRIGGER dependency_no_circle ON tasks_dependency;
CREATE TRIGGER dependency_no_circle AFTER INSERT ON tasks_dependency
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION tasks_no_circle_among();
CREATE TRIGGER dependency_no_circle_moved BEFORE UPDATE ON tasks_dependency
    FOR EACH ROW EXECUTE FUNCTION tasks_no_circle();
"""
BACKWARD = """
DROP TRIGGER dependency_no_circle_moved ON tasks_dependency;
DROP TRIGGER dependency_no_circle ON tasks_dependency;
CREATE TRIGGER dependency_no_circle BEFORE INSERT OR UPDATE ON tasks_dependency
    FOR EACH ROW EXECUTE FUNCTION tasks_no_circle();
DROP FUNCTION tasks_no_circle_among();
"""


class Migration(migrations.Migration):
    """Look for circles once for all dependencies of a statement."""

    dependencies = [("tasks", "0011_hook_counts_bytes")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
