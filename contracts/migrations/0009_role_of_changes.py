"""A line of an org_change contract may name the role that its act gives (Spec: contracts 51)."""

from django.db import migrations, models

REPLACE = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('contracts_line_guard'::regproc), '{before}', '{after}');
END $do$;
"""
COLUMNS = (
    ("NEW.act, NEW.subject)", "NEW.act, NEW.subject, NEW.role)"),
    ("OLD.act, OLD.subject)", "OLD.act, OLD.subject, OLD.role)"),
)
GUARD = "".join(REPLACE.format(before=before, after=after) for before, after in COLUMNS)
UNGUARD = "".join(REPLACE.format(before=after, after=before) for before, after in COLUMNS)


class Migration(migrations.Migration):
    dependencies = [("contracts", "0008_truncate_refused")]
    operations = [
        migrations.AddField(
            "orgchangeline", "role", models.CharField(blank=True, default="", max_length=64)
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
