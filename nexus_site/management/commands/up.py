"""`manage.py up`: database, tables, packs, people and keys; then web server, worker and beat."""

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from core.database import database_now
from core.decision import Denied
from documents.root import know_root
from nexus_site.run import cluster_lock, first_run, roles, safety, up
from nexus_site.run.alone import alone_on_database
from nexus_site.run.postgres import Cluster, PostgresUnavailable
from nexus_site.run.supervisor import STOP_SIGNALS, Child, Supervisor
from orgchart.packs import BadPack
from workspace.provisioning import provision, who_agents_are


class Command(BaseCommand):
    """Run the whole company on this machine, in the foreground, until Ctrl-C."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Describe the options."""
        parser.add_argument(
            "--pid-file",
            type=Path,
            help="stop as well when this file is removed, or when who started this ends",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, run, and leave nothing running."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:  # it had to be there before any import
            os.execv(sys.executable, [sys.executable, "-m", "nexus_site.run", *sys.argv[1:]])  # noqa: S606
        for number in STOP_SIGNALS:  # until there is a supervisor
            signal.signal(number, signal.default_int_handler)
        plan = up.StartPlan(
            host=settings.HOST,
            port=settings.PORT,
            workers=settings.WEB_WORKERS,
            var=settings.NEXUS_VAR,
            cluster=None if settings.DATABASE_URL else Cluster.under(settings.NEXUS_VAR),
            embedded_broker=not settings.REDIS_URL,
        )
        try:
            with up.only_one(plan.var, say=self.say), closing(up.reserve(plan)) as reserved:
                status = self.serve(plan, reserved, pid_file=options["pid_file"])
        except (up.CannotStart, PostgresUnavailable) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Stopped before it was started.") from None
        if status:
            raise SystemExit(status)

    def serve(self, plan: up.StartPlan, reserved: socket, *, pid_file: Path | None) -> int:
        """Run until asked to stop; the database goes last."""
        embedded = cluster_lock.take(plan.cluster) if plan.cluster else None
        try:
            with Supervisor(
                children=up.children(plan, reserved=reserved, on_ready=lambda: self.greet(plan)),
                say=self.say,
                still_wanted=up.wanted_by(pid_file) if pid_file else lambda: True,
            ) as supervisor:
                if pid_file:
                    pid_file.write_text(str(os.getpid()), encoding="ascii")
                up.prepare(plan)
                held = (
                    partial(cluster_lock.hold, plan.cluster, self.begin) if plan.cluster else None
                )
                status = supervisor.finish(
                    Child(name="first run", run=held or self.begin), up.import_the_site
                )
                return status or supervisor.run()
        finally:
            if pid_file:
                pid_file.unlink(missing_ok=True)
            if embedded:
                embedded.release(patience=2.0)  # its children were just killed
            self.say("Stopped.")

    def begin(self) -> int:
        """Make what a first run needs, and say what is said only once; the exit status."""
        if problem := safety.problem_of_restore():
            self.stderr.write(problem)
            return 1
        try:
            if settings.PRODUCTION and not roles.serving_role():
                self.stderr.write(
                    "One role owns the tables and serves: name the owner in DATABASE_OWNER_URL, "
                    "and in DATABASE_URL a role that owns nothing"
                )
                return 1
            if settings.PRODUCTION and (
                problem := safety.problem_of_keys()
                or safety.problem_of_ledger_folder()
                or safety.problem_of_pages()
            ):
                self.stderr.write(problem)
                return 1
            for problem in first_run.damaged_files():
                self.say(problem)
            know_root()
            roles.become_owner()
            with alone_on_database():
                self.prepare()
        except (
            BadPack,
            Denied,
            first_run.WrongDatabase,
            first_run.UnreadableKeys,
            OSError,
        ) as error:
            self.stderr.write(str(error))
            return 1
        except OperationalError as failure:
            self.stderr.write(f"The database cannot be used: {failure}. {_what_to_do(failure)}")
            return 1
        return 0

    def prepare(self) -> None:
        """Bring the tables up to date, and found what there is not yet."""
        if problem := safety.problem_of_restore():  # it was killed while this start waited for it
            raise first_run.WrongDatabase(problem)
        first_run.migrate()
        now = database_now()
        if loaded := first_run.load_missing_packs(packs=settings.BASE_DIR / "packs", now=now):
            self.say(f"Founded from packs: {', '.join(loaded)}.")
        if made := first_run.create_missing_repositories(now=now):
            self.say(f"Git repositories created: {', '.join(made)}.")
        if files := first_run.issue_missing_keys(folder=settings.NEXUS_KEYS, now=now):
            self.say(f"New agent keys in {', '.join(str(file) for file in files)}.")
        self.prepare_hands()
        first_run.create_first_people(show=self.introduce, now=database_now())

    def prepare_hands(self) -> None:
        """Make the agents' folders; what is missing keeps nothing else from running."""
        try:
            done = provision()
        except (Denied, OSError) as problem:
            self.say(f"Agents' folders: {problem}")
            return
        if done:
            self.say(f"Agents' folders: {len(done)} changes; {who_agents_are()}.")

    def introduce(self, passwords: Mapping[str, str]) -> None:
        """Show the first people's passwords, which nothing can show again."""
        if settings.PRODUCTION and not self.stdout.isatty():
            path = settings.NEXUS_KEYS / "first-people.json"
            first_run.write_keys(path, passwords)
            self.say(f"The first people's passwords are in {path}; read it, then delete it.")
            return
        for username, password in passwords.items():
            self.show(f"First {username} user: {username}   password: {password}   (shown once)")

    def greet(self, plan: up.StartPlan) -> None:
        """Say where it is, now that it answers."""
        self.say(f"Admin: {plan.url}/admin/    Agent keys: {settings.NEXUS_KEYS}/<org>.json")
        self.say(f"NEXUS serves at {plan.url}. Ctrl-C stops everything it started.")

    def say(self, text: str) -> None:
        """Tell the person at the terminal, at once; a log on a full disk is no reason to end."""
        with suppress(OSError):
            self.show(text)

    def show(self, text: str) -> None:
        """Tell the person at the terminal what nothing tells again. Raises OSError."""
        self.stdout.write(text)
        self.stdout.flush()


def _what_to_do(problem: OperationalError) -> str:
    if isinstance(problem.__cause__, LockNotAvailable):
        return (
            "Somebody holds a lock on a table, as an operator's open transaction does: end it "
            "(`SELECT pid, query FROM pg_stat_activity WHERE xact_start < now() - interval '20 s'`)"
        )
    named = "DATABASE_URL" if settings.DATABASE_URL else "postgres.log under NEXUS_VAR"
    return f"Look at {named} and at the lines above"
