"""A line of an org_change contract may name what its act gives (Spec: contracts 51, contracts 55)."""

from django.db import migrations, models

NAMES = ("role", "reports_to", "group", "leads")
LISTS = ("co_managers", "skills")
REPLACE = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('contracts_line_guard'::regproc), '{before}', '{after}');
END $do$;
"""


def fixed(row: str, *columns: str) -> str:
    """The end of the columns of a row that the guard lets nobody change."""
    return ", ".join(f"{row}.{column}" for column in ("act", "subject", *columns)) + ")"


CHANGES = [(fixed(row), fixed(row, *NAMES, *LISTS)) for row in ("NEW", "OLD")]
GUARD = "".join(REPLACE.format(before=before, after=after) for before, after in CHANGES)
UNGUARD = "".join(REPLACE.format(before=after, after=before) for before, after in CHANGES)


class Migration(migrations.Migration):
    dependencies = [("contracts", "0008_truncate_refused")]
    operations = [
        *(
            migrations.AddField(
                "orgchangeline", name, models.CharField(blank=True, default="", max_length=64)
            )
            for name in NAMES
        ),
        *(
            migrations.AddField("orgchangeline", name, models.JSONField(blank=True, default=list))
            for name in LISTS
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
