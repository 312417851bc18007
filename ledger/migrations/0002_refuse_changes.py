"""Make the database refuse every change of a written event or seal, whoever asks."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'What happened stays written; record a new event that corrects it.';
END
$$
"""
GUARD = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()
"""
TABLES = ("ledger_event", "ledger_seal")


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_events_and_seals")]
    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION ledger_refuse_change()"),
        *(
            migrations.RunSQL(GUARD.format(table=table), f"DROP TRIGGER {table}_only_grows ON {table}")
            for table in TABLES
        ),
    ]
