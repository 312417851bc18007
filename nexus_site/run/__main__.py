"""`python -m nexus_site.run up`; `… postgres start|stop|status`: the embedded one by hand."""

import os
import sys
from pathlib import Path

from nexus_site.run import counts
from nexus_site.run.postgres import DATABASE, USER, Cluster, PostgresUnavailable

REPOSITORY = Path(__file__).resolve().parents[2]
UNUSED = ("psutil", "requests", "rich")
"""Development tools bring these. Celery, Django REST framework, httpx and structlog import them if
they are there, and use nothing of them here: 8 MB."""

VAR_IS_OURS = (
    "What changes needs a disk with room, and must belong to the user that runs this: "
    "make it so, or name another folder in NEXUS_VAR"
)


def main(words: list[str]) -> int:
    """Do what the words say."""
    var = Path(os.environ.get("NEXUS_VAR") or REPOSITORY / "var").absolute()
    match words:
        case ["up", *options]:
            return up(var, options)
        case ["postgres", "start" | "stop" | "status" as verb]:
            return postgres(Cluster.under(var), verb)
        case _:
            print(__doc__)
            return 2


def up(var: Path, options: list[str]) -> int:
    """Run `manage.py up`, with the folder named in which all processes count for /metrics."""
    metrics = var / "metrics"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
    sys.modules |= dict.fromkeys(UNUSED)  # type: ignore[arg-type]  # as if they were not installed
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        metrics.mkdir(mode=0o700, parents=True, exist_ok=True)
        counts.count_in(metrics)
        execute_from_command_line(["manage.py", "up", *options])
    except ImproperlyConfigured as problem:
        print(problem, file=sys.stderr)
        return 1
    except OSError as problem:
        if not str(problem.filename).startswith(str(var)):
            raise
        print(f"{problem.strerror}: {problem.filename}. {VAR_IS_OURS}", file=sys.stderr)
        return 1
    return 0


def postgres(cluster: Cluster, verb: str) -> int:
    """Start a server that stays, stop it, or tell how to reach it."""
    try:
        if verb == "start":
            cluster.start()
            cluster.kept.touch()
        elif verb == "stop":
            cluster.kept.unlink(missing_ok=True)
            cluster.stop()
    except PostgresUnavailable as error:
        print(error)
        return 1
    serving = cluster.answers()
    print(f"psql -h {cluster.socket} -U {USER} {DATABASE}" if serving else "not running")
    return 0 if serving or verb == "stop" else 3


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
