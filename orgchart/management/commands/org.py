"""`manage.py org …`: packs in, out, compared and checked; settings; explanations."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.database import database_now
from core.decision import Allow, Denied
from core.people import operator
from orgchart.commands import organisation_of
from orgchart.compiling import compile_policy
from orgchart.explaining import CallQuestion, ask_mail, explain
from orgchart.organisation_settings import SETTINGS, merged
from orgchart.packs import (
    BadPack,
    NotAPack,
    OtherOrganisation,
    diff_pack,
    export_pack,
    json_schema,
    kept_deactivated,
    load_pack,
    review_pack,
)
from orgchart.policy.compiled import Policy
from orgchart.policy.difference import Difference
from orgchart.policy.vocabulary import ToolMode
from orgchart.services import set_settings


class Command(BaseCommand):
    """Everything about organisations that belongs on a command line."""

    help = "Load, export, compare and check packs; settings; why something is allowed or not"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One subcommand for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for verb, text in (("load", "load a pack"), ("check", "validate a pack, load nothing")):
            one = verbs.add_parser(verb, help=text)
            one.add_argument("folder", metavar="DIR", type=Path)
            one.add_argument(
                "--organisation", default="", metavar="NAME", help="where no file of DIR names it"
            )
        verbs.add_parser("schema", help="the JSON schema of a pack's files, for editors")
        for verb, text in (
            ("export", "write an organisation as a pack"),
            ("diff", "what loading a pack over an organisation would change"),
        ):
            one = verbs.add_parser(verb, help=text)
            one.add_argument("organisation", metavar="ORG")
            one.add_argument("folder", metavar="DIR", type=Path)
        change = verbs.add_parser("set", help="change settings")
        change.add_argument("organisation", metavar="ORG")
        change.add_argument("values", metavar="KEY=VALUE", nargs="+")
        verbs.add_parser("settings", help="list settings and what they mean").add_argument(
            "organisation", metavar="ORG"
        )
        why = verbs.add_parser("explain", help="may an agent send a mail or call a tool, and why")
        why.add_argument("organisation", metavar="ORG")
        why.add_argument("--agent", required=True, help="handle, address or alias")
        asked = why.add_mutually_exclusive_group(required=True)
        asked.add_argument("--mail", metavar="TYPE")
        asked.add_argument("--tool", metavar="NAME")
        why.add_argument("--to", metavar="RECIPIENT", default="", help="of the mail")
        why.add_argument("--contract", metavar="ID", default="", help="the mail refers to")
        why.add_argument("--mode", default=ToolMode.CHAT_SAFE.value, choices=[*ToolMode])

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what the verb says; every refusal is on standard error, with exit 1."""
        verbs: dict[str, Callable[[dict[str, Any]], None]] = {
            "load": self._load,
            "check": self._check,
            "schema": self._schema,
            "export": self._export,
            "diff": self._diff,
            "set": self._set,
            "settings": self._settings,
            "explain": self._explain,
        }
        try:
            verbs[options["verb"]](options)
        except BadPack as refused:
            self.stderr.write(str(refused))
            count = len(refused.problems)
            raise CommandError(f"{count} problem{'s' * (count > 1)}, nothing is loaded") from None
        except (NotAPack, OtherOrganisation) as problem:
            raise CommandError(str(problem)) from problem
        except OSError as problem:
            place = problem.filename or options.get("folder")  # a full disk names no file
            if place is None:  # standard output: as of every command
                raise
            raise CommandError(f"{place}: {problem.strerror}") from problem
        except Denied as refusal:
            deny = refusal.deny
            raise CommandError(f"{deny.message}; {deny.next_action}") from refusal

    def _load(self, options: dict[str, Any]) -> None:
        """Load a pack: create its organisation, or change the existing one of that name."""
        caller = operator()
        change = load_pack(
            options["folder"],
            caller=caller,
            now=database_now(),
            organisation=options["organisation"],
        )
        self._show(change.difference)
        folder, name = options["folder"], options["organisation"]
        self._show_kept(kept_deactivated(folder, change.after, name))
        version = f"{change.after.organisation}: policy version {change.after.version}"
        self.stdout.write(version if change.changed else f"{version}, unchanged")

    def _check(self, options: dict[str, Any]) -> None:
        """Validate a pack without loading it; warnings are no reason not to load it."""
        review = review_pack(options["folder"], options["organisation"])
        for warning in review.warnings:
            place = f"{warning.file}:{warning.line}"
            self.stdout.write(f"{place}: warning: {warning.message}; {warning.fix}")
        if review.problems:
            raise BadPack(review.problems)
        self.stdout.write(f"{options['folder']}: nothing is wrong")

    def _schema(self, options: dict[str, Any]) -> None:
        """Print the JSON schema of a pack's files."""
        self.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))

    def _export(self, options: dict[str, Any]) -> None:
        """Write an organisation as a pack."""
        for path in export_pack(organisation_of(options["organisation"]), options["folder"]):
            self.stdout.write(str(path))

    def _diff(self, options: dict[str, Any]) -> None:
        """Compare a pack with its organisation: rows first, then what they permit and forbid."""
        organisation = organisation_of(options["organisation"])
        caller = operator(organisation.id)
        found = diff_pack(organisation, options["folder"], caller=caller, now=database_now())
        for row in found.rows:
            self.stdout.write(f"~ {row}")
        self._show(found.difference)
        self._show_kept(found.kept_deactivated)
        if found.is_empty:
            self.stdout.write("no difference")

    def _set(self, options: dict[str, Any]) -> None:
        """Change settings, validated and recorded."""
        organisation = organisation_of(options["organisation"])
        pairs = [value.partition("=") for value in options["values"]]
        wrong = [value for value, sign, _ in pairs if not sign]
        if wrong:
            raise CommandError(f"{wrong[0]}: write KEY=VALUE")
        change = set_settings(
            organisation=organisation,
            values={key: value for key, _, value in pairs},
            caller=operator(organisation.id),
            now=database_now(),
        )
        for key, _, _ in pairs:
            self.stdout.write(f"{key} = {shown(change.after.settings[key])}")

    def _settings(self, options: dict[str, Any]) -> None:
        """List every setting with its value and meaning."""
        values = merged(organisation_of(options["organisation"]).settings)
        for name, setting in SETTINGS.items():
            self.stdout.write(f"{name} = {shown(values[name])}\n    {setting.meaning}")

    def _explain(self, options: dict[str, Any]) -> None:
        """Answer by the very rules that decide calls."""
        policy = compile_policy(organisation_of(options["organisation"]).id)
        decision = explain(self._question(policy, options))
        if isinstance(decision, Allow):
            self.stdout.write(f"allowed by {decision.rule}")
            return
        by = f" (by {decision.rule})" if decision.rule else ""
        self.stdout.write(f"refused: {decision.code}: {decision.message}{by}")
        if decision.next_action:
            self.stdout.write(f"next: {decision.next_action}")

    def _question(self, policy: Policy, options: dict[str, Any]) -> CallQuestion:
        agent = policy.resolve(options["agent"])
        if agent is None:
            raise CommandError(f"{policy.organisation} has no agent {options['agent']}")
        if options["mail"] is None:
            mode = ToolMode(options["mode"])
            return CallQuestion(policy=policy, agent=agent, tool=options["tool"], mode=mode)
        if not options["to"]:
            raise CommandError("--mail TYPE asks of a pair: name the recipient with --to")
        mail_type, to, contract = options["mail"], options["to"], options["contract"]
        return ask_mail(policy, agent, mail_type=mail_type, to=to, contract=contract)

    def _show(self, difference: Difference) -> None:
        for sentence in difference.allowed:
            self.stdout.write(f"+ {sentence}")
        for sentence in difference.forbidden:
            self.stdout.write(f"- {sentence}")

    def _show_kept(self, handles: Sequence[str]) -> None:
        for handle in handles:
            self.stdout.write(
                f"{handle} stays deactivated: a person or an agent deactivated it. "
                "Activate it in the admin."
            )


def shown(value: Any) -> str:
    """A setting's value as `org set` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
