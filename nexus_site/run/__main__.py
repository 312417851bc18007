"""`python -m nexus_site.run up`; `… postgres start|stop|status`: the embedded one by hand."""

import sys
from pathlib import Path

from nexus_site.run import counts
from nexus_site.run.command import folder_of_changes, manage, said_of
from nexus_site.run.compiling import elsewhere
from nexus_site.run.postgres import DATABASE, USER, Cluster, PostgresUnavailable

UNUSED = ("psutil", "pygments", "requests", "rich")
"""Development tools bring these. Celery, Django REST framework, httpx and structlog import them if
they are there, and use nothing of them here: 9 MB."""


def main(words: list[str]) -> int:
    """Do what the words say."""
    var = folder_of_changes()
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
    elsewhere.begin()  # until `import_the_site` is done
    sys.modules |= dict.fromkeys(UNUSED)  # type: ignore[arg-type]  # as if they were not installed
    try:
        metrics.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        print(said_of(problem), file=sys.stderr)
        return 1
    counts.count_in(metrics)
    return manage(["manage.py", "up", *options])


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
