"""API keys of agents: issue one, revoke one; only a digest of it is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Concat

from core.actions import Action
from core.actors import Actor, Person
from core.database import needs_transaction
from core.decision import Code, refuse, require_version
from core.interventions import record_intervention
from core.key_form import KEY_PREFIX, PREFIX_LENGTH
from core.people import board_members, boards_of
from core.permissions import Deed, require_deed
from ledger.services import record
from orgchart.models import Agent, ApiKey, Organisation
from orgchart.people.members import lock_users
from orgchart.policy.compiled import Policy
from orgchart.policy.separation import ORDERS_CHANGES
from orgchart.second_person.rules import can_issue_key

KEY_BYTES = 32


def digest_of(key: str) -> bytes:
    """What is stored of a key: SHA-256 of its text; the key has 256 random bits of its own."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def issue_key(
    *,
    agent: Agent,
    caller: Actor,
    now: datetime,
    reason: str = "",
    expected_keys: int | None = None,
) -> str:
    """Make a new API key for an agent and return it, the only time it can be seen.

    Raises Denied: AGENT_INACTIVE for a deactivated agent, APPROVAL_REQUIRED for a key that a
    person does not issue alone (Spec: people 55), VERSION_MISMATCH where the agent has had another
    number of keys than expected: of two answers to one form a browser shows the last.
    """
    require_deed(caller, Deed.ISSUE_KEY, reason=reason)
    key = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    with transaction.atomic():
        # A change that gives the agent's role this right, or ends its service, is before or after.
        Organisation.objects.select_for_update(no_key=True).get(id=agent.organisation_id)
        agent = Agent.objects.select_related("role").get(id=agent.id)
        if not agent.active:
            raise refuse(
                Code.AGENT_INACTIVE,
                f"{agent.handle} is deactivated and gets no key",
                "activate the agent first",
            )
        require_version(
            f"the keys of {agent.handle}",
            "look which are there; if another one is needed, open this page again",
            expected=expected_keys,
            current=keys_ever(agent),
        )
        if isinstance(caller, Person):
            lock_users()  # a Board that grows meanwhile ends the key, or is seen here
            board = board_members(agent.organisation_id)
            caller.require(can_issue_key(caller, agent.handle, agent.role.tools, board))
        row = ApiKey.objects.create(
            agent=agent, prefix=key[:PREFIX_LENGTH], digest=digest_of(key), created_by=caller.actor
        )
        record(
            Action.KEY_ISSUED,
            by=caller,
            at=now,
            reason=reason,
            subject=f"agent:{agent.handle}",
            details={"prefix": row.prefix},
        )
    return key


def keys_ever(agent: Agent) -> int:
    """How many keys an agent has had, revoked ones too."""
    return ApiKey.objects.filter(agent=agent).count()


def revoke_key(
    *,
    prefix: str,
    caller: Actor,
    now: datetime,
    reason: str = "",
    agent_id: int | None = None,
    expected_others: int | None = None,
) -> None:
    """End a key at once. Revoking twice is no error and changes nothing (Spec: people 32).

    Raises Denied INVALID_PARAMS for a person without a reason, NOT_FOUND when no key of the
    caller's organisation (or, where one is named, of the agent) has the prefix, VERSION_MISMATCH
    where its agent has not `expected_others` other keys in use.
    """
    require_deed(caller, Deed.REVOKE_KEY, reason=reason)
    with transaction.atomic():
        mine = ApiKey.objects.filter(
            prefix=prefix[:PREFIX_LENGTH], agent__organisation_id=caller.organisation_id
        )
        if agent_id is not None:
            mine = mine.filter(agent_id=agent_id)
        if expected_others is not None:
            _require_others(mine, expected_others)
        if _end(mine, caller, now):
            subject = f"key:{prefix[:PREFIX_LENGTH]}"
            record(Action.KEY_REVOKED, by=caller, at=now, subject=subject, reason=reason)
            record_intervention(
                caller,
                deed=Deed.REVOKE_KEY,
                subject=subject,
                trigger_condition="key in use",
                action_taken="revoke_key",
                reason=reason,
                now=now,
            )
        elif not mine.exists():
            raise refuse(
                Code.NOT_FOUND,
                f"no key begins with {prefix[:PREFIX_LENGTH]}",
                "look its prefix up in the admin",
            )


def other_keys(key: ApiKey) -> QuerySet[ApiKey]:
    """The other keys with which its agent can call."""
    return ApiKey.objects.filter(agent=key.agent, revoked_at=None).exclude(pk=key.pk)


@needs_transaction
def _require_others(keys: QuerySet[ApiKey], expected: int) -> None:
    """Refuse where the agent goes on with more or fewer keys than a person was shown."""
    key = keys.first()
    if key is None:
        return
    agent = Agent.objects.select_for_update(no_key=True).get(id=key.agent_id)  # of two one waits
    require_version(
        f"the other keys of {agent.handle}",
        "look which are in use, then decide again",
        expected=expected,
        current=other_keys(key).count(),
    )


def replace_keys(*, caller: Person, now: datetime, reason: str) -> dict[str, str]:
    """End every key of the caller's organisation; a new one for each active agent, by handle.

    All of it or nothing (Spec: wire 32). Raises Denied as `revoke_key` and `issue_key`.
    """
    agents = Agent.objects.filter(organisation_id=caller.organisation_id).order_by("handle")
    with transaction.atomic():
        # A key that is issued meanwhile is one of those that end.
        Organisation.objects.select_for_update(no_key=True).get(id=caller.organisation_id)
        lock_users()  # before the keys: a change of the Board ends some under this lock
        old = ApiKey.objects.filter(agent__in=agents, revoked_at=None).order_by("pk")
        for prefix in old.values_list("prefix", flat=True):
            revoke_key(prefix=prefix, caller=caller, now=now, reason=reason)
        return {
            agent.handle: issue_key(agent=agent, caller=caller, now=now)
            for agent in agents.filter(active=True)
        }


def revoke_keys_of(agent: Agent, *, caller: Actor, now: datetime) -> None:
    """End every key of an agent, as a part of the change that its caller records."""
    _end(ApiKey.objects.filter(agent=agent), caller, now)


def _end(keys: QuerySet[ApiKey], caller: Actor, now: datetime) -> int:
    """End those that work; how many they were."""
    return keys.filter(revoked_at=None).update(revoked_at=now, revoked_by=caller.actor)


@needs_transaction
def revoke_keys_of_one_person(
    organisations: Collection[int | None], *, caller: Person, now: datetime
) -> None:
    """End the keys of agents that order changes, in these organisations (None: in every one), that
    a person issued who is not the only member of the Board now (Spec: people 56).

    What changes the members of a Board calls it. Each key is recorded in its organisation.
    """
    people = get_user_model().objects.annotate(actor=Concat(Value("human:"), "username"))
    keys = ApiKey.objects.filter(
        revoked_at=None,
        agent__role__tools__contains=[ORDERS_CHANGES],
        created_by__in=people.values("actor"),
    )
    if None not in organisations:
        keys = keys.filter(agent__organisation__in=organisations)
    found = list(keys.select_related("agent"))
    boards = boards_of({key.agent.organisation_id for key in found}) if found else {}
    for key in found:
        here = replace(caller, organisation_id=key.agent.organisation_id)
        if {f"human:{name}" for name in boards[here.organisation_id]} != {key.created_by}:
            _end(ApiKey.objects.filter(pk=key.pk), caller, now)
            record(
                Action.KEY_REVOKED,
                by=here,
                at=now,
                subject=f"key:{key.prefix}",
                reason=f"who issued this key of {key.agent.handle} is not alone on the Board",
            )


def revoke_outgrown_keys(before: Policy, after: Policy, *, caller: Actor, now: datetime) -> None:
    """End the keys of agents that come to order changes of the organisation (Spec: people 55).

    A part of the change that its caller records: one person alone may have issued these keys.
    """
    outgrown = [
        agent.id
        for agent in after.agents.values()
        if agent.id in before.by_id
        and ORDERS_CHANGES in after.roles[agent.role].tools
        and ORDERS_CHANGES not in before.roles[before.by_id[agent.id].role].tools
    ]
    if outgrown:
        _end(ApiKey.objects.filter(agent__in=outgrown), caller, now)
