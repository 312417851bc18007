"""A line of an org_change contract may name a group, and to lead it (Spec: contracts 55)."""

from django.db import migrations, models

REPLACE = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('contracts_line_guard'::regproc), '{before}', '{after}');
END $do$;
"""
COLUMNS = tuple(
    (f"{row}.skills)", f"{row}.skills, {row}.group, {row}.leads)") for row in ("NEW", "OLD")
)
GUARD = "".join(REPLACE.format(before=before, after=after) for before, after in COLUMNS)
UNGUARD = "".join(REPLACE.format(before=after, after=before) for before, after in COLUMNS)


class Migration(migrations.Migration):
    dependencies = [("contracts", "0010_place_of_changes")]
    operations = [
        migrations.AddField(
            "orgchangeline", "group", models.CharField(blank=True, default="", max_length=64)
        ),
        migrations.AddField(
            "orgchangeline", "leads", models.CharField(blank=True, default="", max_length=64)
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
