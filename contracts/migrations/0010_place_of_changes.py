"""A line of an org_change contract may name superior, co-managers, skills (Spec: contracts 55)."""

from django.db import migrations, models

REPLACE = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('contracts_line_guard'::regproc), '{before}', '{after}');
END $do$;
"""
COLUMNS = tuple(
    (f"{row}.role)", f"{row}.role, {row}.reports_to, {row}.co_managers, {row}.skills)")
    for row in ("NEW", "OLD")
)
GUARD = "".join(REPLACE.format(before=before, after=after) for before, after in COLUMNS)
UNGUARD = "".join(REPLACE.format(before=after, after=before) for before, after in COLUMNS)


class Migration(migrations.Migration):
    dependencies = [("contracts", "0009_role_of_changes")]
    operations = [
        migrations.AddField(
            "orgchangeline", "reports_to", models.CharField(blank=True, default="", max_length=64)
        ),
        migrations.AddField(
            "orgchangeline", "co_managers", models.JSONField(blank=True, default=list)
        ),
        migrations.AddField("orgchangeline", "skills", models.JSONField(blank=True, default=list)),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
