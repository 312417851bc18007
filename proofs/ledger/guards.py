"""What a superuser does to triggers, rules and tables so that the database refuses less."""

from random import Random

TABLES = ("ledger_event", "ledger_seal")
FUNCTION = "CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql "
RAISES = "RAISE EXCEPTION ''% only grows: % is refused'', TG_TABLE_NAME, TG_OP"
BODIES = (
    "BEGIN RETURN NULL; END",
    "BEGIN RETURN OLD; END",
    "BEGIN RAISE NOTICE ''no''; RETURN NULL; END",
    "BEGIN IF current_user = ''{word}'' THEN RETURN NULL; END IF; " + RAISES + "; END",
    "BEGIN IF current_setting(''a.{word}'', true) = ''1'' THEN RETURN NULL; END IF; "
    + RAISES
    + "; END",
    "BEGIN IF TG_OP = ''TRUNCATE'' THEN RETURN NULL; END IF; " + RAISES + "; END",
    "BEGIN " + RAISES + "; EXCEPTION WHEN OTHERS THEN RETURN NULL; END",
)
TRIGGERS = (
    "BEFORE UPDATE OR DELETE ON {table} FOR EACH STATEMENT",
    "BEFORE DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT",
    "AFTER UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT",
    "BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW",
    "BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW WHEN (OLD IS NULL)",
    "BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT WHEN ({setting})",
)
SIMPLE = (
    "ALTER TABLE {table} DISABLE TRIGGER USER",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "ALTER TABLE {table} DISABLE TRIGGER {table}_only_grows",
    "ALTER TABLE {table} ENABLE REPLICA TRIGGER {table}_only_grows",
    "DROP TRIGGER {table}_only_grows ON {table}",
    "ALTER TRIGGER {table}_only_grows ON {table} RENAME TO {word}",
    "ALTER FUNCTION ledger_refuse_change() SET session_replication_role = replica",
    "ALTER FUNCTION ledger_refuse_change() RENAME TO {word}",
    "CREATE RULE {word} AS ON INSERT TO {table} DO INSTEAD NOTHING",
    "CREATE RULE {word} AS ON INSERT TO {table} WHERE {condition} DO INSTEAD NOTHING",
    "CREATE RULE {word} AS ON UPDATE TO {table} DO INSTEAD NOTHING",
    "CREATE RULE {word} AS ON DELETE TO {table} WHERE {condition} DO INSTEAD NOTHING",
    "CREATE RULE {word} AS ON INSERT TO {table} DO ALSO NOTIFY {word}",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "CREATE TABLE {word} () INHERITS ({table})",
    "CREATE TRIGGER {word} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {swallow}()",
    "CREATE TRIGGER {word} BEFORE INSERT ON {table} WHEN ({setting}) EXECUTE FUNCTION {swallow}()",
    "CREATE TRIGGER {word} AFTER INSERT ON {table} EXECUTE FUNCTION {swallow}()",
)
SILENT = ("replica", "local", "'replica'")
SWALLOW = "CREATE FUNCTION {swallow}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"


def weakened(chance: Random) -> tuple[str, ...]:
    """One way to let the database refuse less, or to let rows vanish."""
    word, table = f"w{chance.getrandbits(40):x}", chance.choice(TABLES)
    words = {
        "word": word,
        "table": table,
        "swallow": f"f{word}",
        "condition": f"NEW.era = {chance.randint(1, 9)}",
        "setting": f"current_setting('a.{word}', true) = '1'",
    }
    match chance.randrange(6):
        case 0:
            body = chance.choice(BODIES).replace("{word}", word)
            return (f"{FUNCTION} AS '{body}'",)
        case 1:
            drop = f"DROP TRIGGER {table}_only_grows ON {table}"
            trigger = chance.choice(TRIGGERS).format(**words)
            made = f"CREATE TRIGGER {table}_only_grows {trigger}"
            return (drop, f"{made} EXECUTE FUNCTION ledger_refuse_change()")
        case 2:
            whose = chance.choice(("ROLE CURRENT_USER", "ROLE ALL", "ROLE SESSION_USER"))
            return (f"ALTER {whose} SET session_replication_role = {chance.choice(SILENT)}",)
        case _:
            simple = chance.choice(SIMPLE)
            if "DELETE TO" in simple:
                words["condition"] = words["condition"].replace("NEW", "OLD")
            before = (SWALLOW.format(**words),) if "{swallow}" in simple else ()
            return (*before, simple.format(**words))
