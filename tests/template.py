"""One migrated database that every database of the tests is a copy of: it is migrated once."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

PREFIX = "nexus_template_"
LOCK = 7_360_001  # of the cluster: one process makes the template, the others wait
ROOT = Path(__file__).parents[1]


def template() -> str:
    """The name of the template of the present migrations, made where the cluster has none."""
    name = PREFIX + _digest_of_migrations()
    with connection._nodb_cursor() as server:
        server.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        server.execute("SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", [name])
        if not server.fetchone():
            _drop_templates(server)
            _migrate(name)
            server.execute(f"ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false")
    return name


def _digest_of_migrations() -> str:
    """Changes with any migration, ours or a package's."""
    listed = [*ROOT.glob("*/migrations/*.py"), ROOT / "requirements.txt"]
    found = hashlib.sha256()
    for path in sorted(listed):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def _drop_templates(server: CursorWrapper) -> None:
    """Drop those of other migrations, and what a killed process left of this one."""
    server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
    for (name,) in server.fetchall():
        server.execute(f"ALTER DATABASE {name} IS_TEMPLATE false")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _migrate(name: str) -> None:
    given, places = connection.settings_dict, settings.DATABASES[connection.alias]
    own, test = given["NAME"], given["TEST"]["NAME"]
    given["TEST"]["NAME"] = name
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
    finally:
        connection.close()
        connection.close_pool()
        given["NAME"] = places["NAME"] = own
        given["TEST"]["NAME"] = test
