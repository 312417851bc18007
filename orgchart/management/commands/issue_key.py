"""`manage.py issue_key ORG AGENT`: a new API key on standard output, nothing else."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.database import database_now
from core.decision import Denied
from core.key_form import PREFIX_LENGTH
from core.people import operator
from orgchart.commands import organisation_of
from orgchart.compiling import compile_policy
from orgchart.keys import issue_key, replace_keys, revoke_key
from orgchart.models import Agent, ApiKey, Organisation

NO_REASON = "revoked at the command line, no reason given"
USAGE = "name the organisation and the agent: issue_key ORG AGENT"
ALL_OF_ORG = "--all replaces the keys of every agent: name no agent"


class Command(BaseCommand):
    """Issue a key, end one, or replace all of an organisation."""

    help = "Print a new API key for an agent; --revoke PREFIX ends one; --all replaces all of ORG"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the organisation and the agent; a key's prefix says both."""
        parser.add_argument("organisation", metavar="ORG", nargs="?")
        parser.add_argument("agent", metavar="AGENT", nargs="?", help="handle, address or alias")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--revoke", metavar="PREFIX", help="end the key that begins so")
        which.add_argument(
            "--all",
            action="store_true",
            help="end every key of ORG; print a new one for each active agent, as JSON",
        )
        parser.add_argument("--reason", default=NO_REASON, help="why keys end, for the record")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the key once, or all of them; they are not kept."""
        prefix = options["revoke"]
        organisation = self._organisation(options["organisation"], prefix)
        agent = self._agent(organisation, options["agent"]) if options["agent"] else None
        caller = operator(organisation.id, organisation.policy_version)
        now, reason = database_now(), options["reason"]
        try:
            if prefix is not None:
                whose = agent.id if agent else None
                revoke_key(prefix=prefix, caller=caller, now=now, reason=reason, agent_id=whose)
                return
            if options["all"] == (agent is not None):
                raise CommandError(ALL_OF_ORG if options["all"] else USAGE)
            with transaction.atomic():  # none is ever valid and not printed
                if agent is not None:
                    printed = issue_key(agent=agent, caller=caller, now=now)
                else:
                    keys = replace_keys(caller=caller, now=now, reason=reason)
                    printed = json.dumps(keys, indent=2)
                self.stdout.write(printed)
                self.stdout.flush()
        except Denied as refusal:
            deny = refusal.deny
            raise CommandError(f"{deny.message}; {deny.next_action}") from refusal

    def _organisation(self, slug: str | None, prefix: str | None) -> Organisation:
        if slug is not None:
            return organisation_of(slug)
        if prefix is None:
            raise CommandError(USAGE)
        key = ApiKey.objects.filter(prefix=prefix[:PREFIX_LENGTH]).select_related(
            "agent__organisation"
        )
        if not key:
            raise CommandError(f"no key begins with {prefix[:PREFIX_LENGTH]}")
        return key[0].agent.organisation

    def _agent(self, organisation: Organisation, name: str) -> Agent:
        card = compile_policy(organisation.id).resolve(name)
        if card is None:
            raise CommandError(f"{organisation.slug} has no agent {name}")
        return Agent.objects.get(id=card.id)
