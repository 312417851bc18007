"""`manage.py skills …`: which skills there are, and whose commands may run."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.actors import Person
from core.database import database_now
from core.decision import Denied
from core.people import operator
from core.terminal import printable, printable_lines
from orgchart import catalogue
from orgchart.commands import organisation_of
from workspace.models import Skill
from workspace.sandbox import driver
from workspace.skills import folders, services
from workspace.skills.starting import start_skill
from workspace.skills.warnings import doubts_about


class Command(BaseCommand):
    """Scan the folders, read a skill, approve it, withdraw the approval."""

    help = "List the skills of the configured folders; approve the exact file of one"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One subcommand for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        verbs.add_parser("scan", help="look into the folders and list what is there")
        verbs.add_parser("show", help="print one, with its digest").add_argument("name")
        approve = verbs.add_parser("approve", help="approve the file as it is now")
        approve.add_argument("name")
        approve.add_argument("--reason", required=True)
        approve.add_argument("--sha256", help="the digest you have read; else that of this moment")
        start = verbs.add_parser("start", help="start one for an agent, as a person")
        start.add_argument("organisation", metavar="ORG")
        start.add_argument("agent", metavar="AGENT", help="handle, address or alias")
        start.add_argument("name")
        start.add_argument(
            "--args", dest="arguments", default="", help="put in the place of $ARGUMENTS"
        )
        start.add_argument("--reason", required=True)
        withdraw = verbs.add_parser("withdraw", help="take an approval back")
        withdraw.add_argument("name")
        withdraw.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run one verb."""
        caller = operator()
        try:
            match options["verb"]:
                case "scan":
                    self._scan(caller)
                case "show":
                    self._show(options["name"])
                case "approve":
                    self._approve(caller, options)
                case "start":
                    self._start(options)
                case _:
                    self._withdraw(caller, options)
        except Denied as refusal:
            deny = refusal.deny
            raise CommandError(f"{deny.message}; {deny.next_action}") from refusal

    def _scan(self, caller: Person) -> None:
        for row in services.scan(caller=caller, now=database_now()):
            self.stdout.write(printable(line_of(row)))
            for line in details_of(row):
                self.stdout.write(f"  {printable(line)}")
        found = driver.strongest()
        problem = found if isinstance(found, str) else ""
        if problem:
            self.stdout.write(f"no command line can run here: {problem}")

    def _withdraw(self, caller: Person, options: dict[str, Any]) -> None:
        name, reason = options["name"], options["reason"]
        services.withdraw(name=name, reason=reason, caller=caller, now=database_now())
        self.stdout.write(f"{name} is no longer approved")

    def _start(self, options: dict[str, Any]) -> None:
        organisation = organisation_of(options["organisation"])
        started = start_skill(
            person=operator(organisation.id),
            agent=options["agent"],
            name=options["name"],
            arguments=options["arguments"],
            reason=options["reason"],
            now=database_now(),
        )
        self.stdout.write(f"frame {started['frame_id']}, {started['name']}")

    def _show(self, name: str) -> None:
        found = folders.read(name)
        if found is None:
            raise CommandError(f"no configured folder has a skill {name}")
        said = f"{found.path}\nsha256 {found.digest}\n{found.problem}\n{found.text}"
        self.stdout.write(printable_lines(said))

    def _approve(self, caller: Person, options: dict[str, Any]) -> None:
        name = options["name"]
        found = folders.read(name)
        row = services.approve(
            name=name,
            digest=options["sha256"] or (found.digest if found else ""),
            reason=options["reason"],
            caller=caller,
            now=database_now(),
        )
        self.stdout.write(f"approved {row.name}, sha256 {row.approved_digest}")
        for command in row.commands:
            self.stdout.write(f"  may run: {printable(command)}")


def details_of(row: Skill) -> Iterator[str]:
    """What an installed, valid skill is allowed and runs, and what of its file has no effect."""
    if not row.installed or row.problem:
        return
    tools = [tool for tool in row.allowed_tools if tool in catalogue.known()]
    yield f"allowed, of what its agent has: {', '.join(tools) or 'no tool but return_result'}"
    yield from (f"runs: {command}" for command in row.commands)
    yield from (f"warning: {message}" for message, _ in doubts_about(row.name))


def line_of(row: Skill) -> str:
    """A skill in one line."""
    if not row.installed:
        state = "not installed"
    elif row.problem:
        state = f"invalid: {row.problem}"
    elif row.approved:
        state = f"approved by {row.approved_by}"
    elif row.approved_digest:
        state = "changed after its approval: refused"
    elif row.was_approved:
        state = "its approval was withdrawn: refused"
    else:
        state = f"not approved: its {len(row.commands)} commands do not run" * bool(row.commands)
        state = state or "runs no commands"
    return f"{row.name}  {row.digest[:16]}  {state}"
