"""Verbs on the organisation: the one way to change a policy and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from django.db import connection, transaction
from django.db.models import F

from core.actions import Action
from core.actors import Actor, Person, System
from core.decision import Allow, Code, Decision, Denied, Deny, refuse, require_version
from core.hooks import Hook
from core.people import board_members, require_still
from core.permissions import Deed, require_deed
from ledger.services import record
from orgchart.compiling import compile_policy
from orgchart.keys import revoke_outgrown_keys
from orgchart.models import Organisation
from orgchart.organisation_settings import checked, public, quota_of
from orgchart.policy import difference, invariants
from orgchart.policy.compiled import Policy
from orgchart.policy.difference import Difference
from orgchart.policy.violation import BrokenInvariant
from orgchart.policy_cache import MOST_BYTES, bytes_of, mark_changing
from orgchart.second_person.rules import can_apply, can_change_alone
from orgchart.setting_parsers import BadSetting
from orgchart.settings_rights import require_settings

settings_changing = Hook[
    [Organisation, Mapping[str, Any], Actor, datetime], AbstractContextManager[Callable[[], None]]
]("settings of an organisation change: what they mean elsewhere")
"""Entered before the transaction of the change, for what takes long, and left after it. What it
yields is called in that transaction. Both may raise Denied; the settings do not change then.
"""
settings_previewed = Hook[[Organisation, Mapping[str, Any]], object](
    "settings of an organisation would change: what is refused already"
)
"""Raises Denied; changes nothing, and does nothing that takes long."""
policy_changing = Hook[[Policy, Policy], None](
    "a policy changes: what the open work of agents does not allow"
)
"""Policy before and after, in the transaction of the change; raises Denied."""
roles_changed = Hook[[Sequence[int], Actor, datetime], object]("agents have another role")
"""The ids of all of them, who changed it, and when, in the transaction of the change, before
`role_changed` is called for each: for what has to be locked first."""
role_changed = Hook[[int, Actor, datetime], object]("an agent has another role")
"""The agent's id, who changed it, and when, in the transaction of the change."""
agents_activated = Hook[[Sequence[int], Actor, datetime], object]("agents are active again")
"""The ids of all of them, who changed it, and when, in the transaction of the change: what they
held before is theirs no more, also where no scheduled job has run since they were deactivated.
"""
MOST_SENTENCES = 2000
allow_by_contract = Hook[[Person, Policy, Policy, datetime], Allow](
    "an org_change contract that a person names in place of a second person"
)
"""Person, policy before and after, time; uses the contract up or raises Denied."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change that took effect, or would: the policy after it, and the difference it makes.

    `changed` is False where everything was so already: no new version, no event. `alone` says
    whether it takes effect without a second person, `contract` which one it used up instead.
    """

    after: Policy
    difference: Difference
    before: Policy | None = None
    changed: bool = True
    alone: Decision = field(default_factory=Allow)
    contract: str = ""


class ChangeRequest(TypedDict):
    """Who changes a policy, when and why, and the version that it must still have.

    With `preview` everything is done and rolled back.
    """

    caller: Actor
    now: datetime
    reason: str
    expected_version: NotRequired[int | None]
    preview: NotRequired[bool]


class SecondPersonNeeded(Denied):
    """A person's change that gives a right: refused here, so that it is proposed instead."""

    def __init__(self, deny: Deny, change: PolicyChange) -> None:
        super().__init__(deny)
        self.change = change


class _PreviewDone(Exception):
    """Rolls a previewed change back."""

    def __init__(self, change: PolicyChange) -> None:
        self.change = change


def change_policy(  # noqa: PLR0913  a change has these parts
    *,
    organisation_id: int,
    apply: Callable[[Organisation], None],
    caller: Actor,
    action: Action,
    now: datetime,
    reason: str = "",
    subject: str = "",
    expected_version: int | None = None,
    preview: bool = False,
    new: bool = False,
    is_removal: bool = False,
    details: Mapping[str, Any] | None = None,
) -> PolicyChange:
    """Change the policy, in one transaction: lock, apply, check every invariant, count, record.

    `details` go into the event with the difference. With `preview` everything is done and rolled
    back. `is_removal` marks a change that takes an agent out of service: what others inherit by
    that, no person gives them. Raises Denied: VERSION_MISMATCH when the policy is no longer the
    expected version, INVALID_PARAMS with every broken invariant in `details["violations"]`, and
    SecondPersonNeeded for a person's change that gives a right; nothing has changed then.
    """
    try:
        with transaction.atomic():
            change = _apply_change(organisation_id, apply, expected_version, new=new)
            require_still(caller)
            if isinstance(caller, Person) and not is_removal:
                change = _decided(caller, change, now)
            if preview:
                raise _PreviewDone(change)  # noqa: TRY301  rolls back what was tried
            if isinstance(change.alone, Deny):
                raise SecondPersonNeeded(change.alone, change)
            changed_ids = _agents_of_another_role(change)
            if changed_ids:
                roles_changed(changed_ids, caller, now)
            for agent_id in changed_ids:
                role_changed(agent_id, caller, now)
            if activated_ids := _agents_active_again(change):
                agents_activated(activated_ids, caller, now)
            if change.before is not None and not _is_operator(caller):
                revoke_outgrown_keys(change.before, change.after, caller=caller, now=now)
            record(
                action,
                by=caller,
                at=now,
                subject=subject or f"organisation:{change.after.organisation}",
                reason=reason,
                details={
                    "policy_version": change.after.version,
                    "allowed": _first_sentences(change.difference.allowed),
                    "forbidden": _first_sentences(change.difference.forbidden),
                    **_confirmed_by(caller, change),
                    **(details or {}),
                },
            )
            connection.check_constraints()  # who is hired has a user number from here on
            return change
    except _PreviewDone as seen:
        return seen.change


def _is_operator(caller: Actor) -> bool:
    """Whether the caller is the operator at the command line, or the product itself."""
    return isinstance(caller, System) or (isinstance(caller, Person) and caller.at_shell)


def _decided(person: Person, change: PolicyChange, now: datetime) -> PolicyChange:
    """The change with the decision whether it takes effect now; a named contract is used up where
    it takes the place of the second person. Raises Denied where it does not allow the change.
    """
    if person.confirmation is not None:
        return replace(change, alone=can_apply(person.confirmation, change.difference))
    alone = can_change_alone(person, change.difference, board_members(person.organisation_id))
    if isinstance(alone, Deny) and person.contract and change.before is not None:
        for allowed in allow_by_contract(person, change.before, change.after, now):
            return replace(change, alone=allowed, contract=person.contract)
    return replace(change, alone=alone)


def _confirmed_by(caller: Actor, change: PolicyChange) -> dict[str, str]:
    if change.contract:
        return {"contract": change.contract}
    confirmation = caller.confirmation if isinstance(caller, Person) else None
    return {"confirmed_by": confirmation.by} if confirmation else {}


def _first_sentences(sentences: Sequence[str]) -> list[str]:
    """The sentences for the event: all, or the first ones and the number of the others."""
    more = len(sentences) - MOST_SENTENCES
    return [*sentences[:MOST_SENTENCES], *([f"… and {more} more"] if more > 0 else [])]


def _apply_change(
    organisation_id: int,
    apply: Callable[[Organisation], None],
    expected_version: int | None,
    *,
    new: bool,
) -> PolicyChange:
    # The key stays free: foreign keys of mails and contracts neither wait nor close a circle here.
    organisation = Organisation.objects.select_for_update(no_key=True).get(id=organisation_id)
    require_version(
        "the organisation",
        "read it again, look at what changed, and repeat with its current version",
        expected=expected_version,
        current=organisation.policy_version,
    )
    before = None if new else compile_policy(organisation_id)
    apply(organisation)
    require_no_circle(organisation)
    Organisation.objects.filter(id=organisation_id).update(policy_version=F("policy_version") + 1)
    mark_changing(organisation_id)
    after = compile_policy(organisation_id)
    _require_room(0 if before is None else len(before.agents), after)
    _require_light(0 if before is None else bytes_of(before), bytes_of(after))
    if broken := _newly_broken(before, after):
        first = broken[0]
        raise refuse(
            Code.INVALID_PARAMS,
            f"this would break `{first.invariant}`: {first.subject}: {first.message}",
            first.fix,
            rule=first.invariant,
            violations=[
                {
                    "invariant": v.invariant,
                    "subject": v.subject,
                    "message": v.message,
                    "mend": v.fix,
                }
                for v in broken
            ],
        )
    if before is not None:
        policy_changing(before, after)
    return PolicyChange(after, difference.between(before, after), before)


def _require_room(agents: int, after: Policy) -> None:
    """Refuse more agents than the organisation may have: an installation has numbers for so many.

    Spec: settings 9, files 8. Raises Denied QUOTA_EXCEEDED.
    """
    limit = quota_of(after.settings, "organisation_agents")
    if agents < len(after.agents) > limit:
        raise refuse(
            Code.QUOTA_EXCEEDED,
            f"agents of an organisation: {agents} of {limit} are there, deactivated ones too",
            "the Board and the people who run NEXUS set the limit",
            rule="quota",
            what="agents of an organisation",
            used=agents,
            limit=limit,
        )


def _require_light(before: int, after: int) -> None:
    """Refuse more than a policy may weigh: every process that serves keeps the whole of it.

    Spec: settings 9. Raises Denied QUOTA_EXCEEDED.
    """
    if before < after > MOST_BYTES:
        raise refuse(
            Code.QUOTA_EXCEEDED,
            f"what an organisation says of its agents, roles and rules: "
            f"this would make it {after} of {MOST_BYTES} bytes",
            "write less: shorten prompts, prohibitions and what groups share",
            rule="quota",
            what="what an organisation says of its agents, roles and rules",
            used=before,
            limit=MOST_BYTES,
        )


def _newly_broken(before: Policy | None, after: Policy) -> list[BrokenInvariant]:
    """What a change breaks. What was broken before stays, as after an update with a new invariant.

    Else two rows that break it could not be corrected one after the other (Spec: organisation 26).
    """
    found = invariants.violations(after)
    if not found or before is None:
        return found
    known = frozenset(invariants.violations(before))
    return [each for each in found if each not in known]


def _agents_of_another_role(change: PolicyChange) -> list[int]:
    """The ids of the agents that the change gives another role."""
    before = {} if change.before is None else change.before.by_id
    return [
        agent.id
        for agent in change.after.agents.values()
        if agent.id in before and before[agent.id].role != agent.role
    ]


def _agents_active_again(change: PolicyChange) -> list[int]:
    """The ids of the agents that the change activates again."""
    before = {} if change.before is None else change.before.by_id
    return [
        agent.id
        for agent in change.after.agents.values()
        if agent.active and agent.id in before and not before[agent.id].active
    ]


def require_no_circle(organisation: Organisation) -> None:
    """Refuse a chain of command that closes on itself, before anything is compiled from it."""
    pairs = organisation.agents.exclude(reports_to=None).values_list("handle", "reports_to__handle")
    circle = invariants.circle_in(dict(pairs))
    if circle:
        raise refuse(
            Code.INVALID_PARAMS,
            f"this would break `no circle in reports_to`: {' -> '.join([*circle, circle[0]])}",
            "let one of them report to another agent",
            rule="no circle in reports_to",
        )


def set_settings(
    *,
    organisation: Organisation,
    values: dict[str, object],
    caller: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> PolicyChange:
    """Set organisation settings, validated and recorded (Spec: settings 1).

    Raises Denied INVALID_PARAMS naming the setting and what it can hold.
    """
    reason = ", ".join(f"{name}={value}" for name, value in values.items())
    require_deed(caller, Deed.EDIT_ORGANISATION, reason=reason)
    require_settings(caller, values.keys(), reason=reason)
    try:
        valid = checked(values)
    except BadSetting as problem:
        raise refuse(
            Code.INVALID_PARAMS, str(problem), "see `org settings` for what each can hold"
        ) from problem

    def apply(row: Organisation) -> None:
        row.settings = {**row.settings, **valid}
        row.save(update_fields=["settings"])

    with followed_settings(organisation, valid, caller, now) as take_effect, transaction.atomic():
        change = change_policy(
            organisation_id=organisation.id,
            apply=apply,
            caller=caller,
            action=Action.ORGANISATION_SETTINGS_CHANGED,
            now=now,
            expected_version=expected_version,
            reason=", ".join(f"{name}={value}" for name, value in public(valid).items()),
        )
        take_effect()
    return change


@contextmanager
def followed_settings(
    organisation: Organisation, values: Mapping[str, Any], caller: Actor, now: datetime
) -> Iterator[Callable[[], None]]:
    """Enter what settings mean elsewhere, in no transaction; see `settings_changing`.

    What it yields is called in the transaction of the change.
    """
    with ExitStack() as stack:
        effects = [
            stack.enter_context(effect)
            for effect in settings_changing(organisation, values, caller, now)
        ]

        def take_effect() -> None:
            for effect in effects:
                effect()

        yield take_effect
