"""Who may issue which contract: assignee, kind, deadline, mode, channels; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from contracts.vocabulary import ContractKind
from core.decision import NAMED, Allow, Code, Decision, Deny, deny, listed
from mailroom.rules import can_receive, find_recipient
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.separation import ORGANISATION_TOOLS
from orgchart.policy.vocabulary import BOARD, Kind, ToolMode

GENERATE, CREATE, APPROVE = "generate_contract", "create_contract", "approve_deployment"
ISSUING_TOOLS = frozenset({GENERATE, CREATE, APPROVE})
"""Who has none of them issues no contract."""
KINDS_BY_TOOL = {
    GENERATE: frozenset({ContractKind.WORK, ContractKind.ORG_CHANGE, ContractKind.BUDGET}),
    CREATE: frozenset({ContractKind.WORK}),
    APPROVE: frozenset({ContractKind.DEPLOYMENT_APPROVAL}),
}
MANAGEMENT_LEVEL = 2
MOST_OPEN = 5000
"""Contracts of one issuer that are open at once; approvals end by themselves and do not count."""
DEPLOYING = "docker_deploy"


@dataclass(frozen=True, slots=True)
class RequestedChannel:
    """A channel that a contract asks to open. `types` None: all types of the pair's rule."""

    sender: str
    recipient: str
    types: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class GrantedChannel:
    """A channel that a contract opens."""

    sender: Agent
    recipient: Agent
    types: frozenset[str]


def find_assignee(name: str, policy: Policy, known: Collection[str] = ()) -> Agent | Deny:
    """The agent that a contract is for, or why there is none; never the Board.

    Spec: contracts 10.
    """
    if name == BOARD:
        return deny(
            Code.CONTACT_DENIED,
            "contracts go down, never to the Board (spec: contracts 10)",
            "issue it to an agent that reports to you",
            rule="never to board (spec: contracts 10)",
        )
    return find_recipient(name, policy, known)


def can_issue(
    issuer: Agent, recipient: Agent, kind: ContractKind, tool: str, policy: Policy
) -> Decision:
    """Decide whether an agent may issue a contract of this kind to another with this tool.

    Contacts first, then the chain of command, then the kind (C-07; Spec: contracts 5).
    """
    if issuer.handle != recipient.handle and policy.rule_between(issuer, recipient) is None:
        allowed = policy.contacts_of(issuer)
        return deny(
            Code.CONTACT_DENIED,
            f"{issuer.handle} is not authorized to contact {recipient.handle}. "
            f"Allowed contacts: {listed(allowed) or 'none'}",
            _name_assignees(issuer, policy),
            rule=f"contacts of {issuer.role} (spec: mail 8)",
            allowed_contacts=list(allowed[:NAMED]),
        )
    reachable = can_receive(recipient)
    if isinstance(reachable, Deny):
        return reachable
    if not _below(issuer, recipient, policy):
        return deny(
            Code.LEVEL_DENIED,
            f"{issuer.handle} (level {policy.level_of(issuer)}) cannot issue a contract to "
            f"{recipient.handle} (level {policy.level_of(recipient)}): contracts go down the chain "
            "of command, to one's own",
            _name_assignees(issuer, policy),
            rule="contracts flow downward, C-07 (spec: contracts 4)",
        )
    level = policy.level_of(recipient)
    if tool == GENERATE and level != MANAGEMENT_LEVEL:  # Spec: contracts 6
        return deny(
            Code.LEVEL_DENIED,
            f"{GENERATE} is for level {MANAGEMENT_LEVEL}; {recipient.handle} is of level {level}",
            f"name an agent of level {MANAGEMENT_LEVEL}, or use {CREATE} if it is listed for you",
            rule=f"{GENERATE} is for level {MANAGEMENT_LEVEL} (spec: contracts 6)",
        )
    return _kind_allowed(recipient, kind, tool, policy)


def _below(issuer: Agent, recipient: Agent, policy: Policy) -> bool:
    """The top agent's managers; a manager's own direct or co-managed workers."""
    level = policy.level_of(recipient)
    match policy.role_of(issuer).kind:
        case Kind.EXECUTIVE:
            return issuer.handle != recipient.handle and level == MANAGEMENT_LEVEL
        case Kind.MANAGER:
            return issuer.handle in recipient.managers and level > policy.level_of(issuer)
        case Kind.WORKER:
            return False


def _name_assignees(issuer: Agent, policy: Policy) -> str:
    mine = sorted(
        other.handle
        for other in policy.agents.values()
        if other.active
        and policy.rule_between(issuer, other) is not None
        and _below(issuer, other, policy)
    )
    if mine:
        return f"issue it to one of: {listed(mine)}"
    return f"no active agent can take a contract of yours; ask {issuer.superior} with send_mail"


def _kind_allowed(recipient: Agent, kind: ContractKind, tool: str, policy: Policy) -> Decision:
    if kind not in KINDS_BY_TOOL[tool]:
        return _kind_refused(kind, tool)
    usable = policy.role_of(recipient).tools - policy.role_of(recipient).denied_tools
    needed = {
        ContractKind.ORG_CHANGE: ORGANISATION_TOOLS,
        ContractKind.DEPLOYMENT_APPROVAL: frozenset({DEPLOYING}),
    }.get(kind)
    if needed is not None and not usable & needed:
        return deny(
            Code.LEVEL_DENIED,
            f"{kind} is for a role with {' or '.join(sorted(needed))}; {recipient.role} has none",
            "issue it to an agent with these tools, or issue it as work",
            rule=f"{kind} authorises its holder's tools (spec: contracts 12)",
        )
    return Allow(f"{kind} by {tool}, downward, C-07 (spec: contracts 4)")


def _kind_refused(kind: ContractKind, tool: str) -> Deny:
    right = next(name for name, kinds in KINDS_BY_TOOL.items() if kind in kinds)
    return deny(
        Code.INVALID_PARAMS,
        f"kind: {kind} is never issued with {tool}: it comes from {right}",
        f"use {right}, or issue it as work",
        rule=f"{kind} is issued by {right}",
        kind=f"comes from {right}",
    )


def can_have_open(there: int) -> Decision:
    """Decide whether an issuer may have one more open contract (Spec: contracts 59)."""
    if there < MOST_OPEN:
        return Allow("few enough contracts are open (spec: contracts 59)")
    return deny(
        Code.QUOTA_EXCEEDED,
        f"{MOST_OPEN} contracts that you issued are open",
        "close some with close_contract; list_contracts shows them",
        rule="an issuer has so many open contracts (spec: contracts 59)",
        what="open contracts of an issuer",
        used=there,
        limit=MOST_OPEN,
    )


def can_be_due(deadline: datetime | None, now: datetime) -> Decision:
    """Decide whether a contract may have this deadline: none, or one in the future."""
    if deadline is None or deadline > now:
        return Allow("deadline")
    return deny(
        Code.INVALID_PARAMS,
        f"deadline: {deadline.isoformat()} is in the past",
        "give a time in the future, or leave deadline out",
        rule="a deadline is in the future",
        deadline="must be in the future",
    )


def can_open_mode(mode: ToolMode, policy: Policy) -> Decision:
    """Decide whether a contract may open this mode: only one that the organisation enables."""
    if mode in policy.enabled_modes:
        return Allow("enabled_modes")
    return deny(
        Code.MODE_DENIED,
        f"{mode} is not enabled in {policy.organisation}",
        f"issue it with mode {ToolMode.CHAT_SAFE}",
        rule="enabled_modes",
    )


def can_grant(
    requested: RequestedChannel, issuer: Agent, assignee: Agent, policy: Policy
) -> GrantedChannel | Deny:
    """Decide which channel a contract opens (Spec: contracts 36): one that the organisation's
    rules open under a contract, with the assignee on one side, by a manager of the assignee.
    """
    ends = [find_assignee(name, policy) for name in (requested.sender, requested.recipient)]
    for end in ends:
        if isinstance(end, Deny):
            return end
    sender, recipient = (end for end in ends if isinstance(end, Agent))
    if issuer.handle not in assignee.managers or policy.role_of(issuer).kind is not Kind.MANAGER:
        return deny(
            Code.LEVEL_DENIED,
            f"{issuer.handle} opens no channels for {assignee.handle}: its own manager does",
            "issue the contract without grants",
            rule="channels are granted by the assignee's manager (spec: contracts 36)",
        )
    rule = policy.rule_between(sender, recipient)
    if assignee.id not in (sender.id, recipient.id) or rule is None or not rule.needs_contract:
        return deny(
            Code.CONTACT_DENIED,
            f"a contract for {assignee.handle} cannot open {sender.handle} -> {recipient.handle}",
            "grant only channels of the assignee that the organisation's rules open under a "
            "contract, or leave grants out",
            rule="a grant opens a channel that a contact rule allows under a contract",
        )
    for end in (sender, recipient):
        reachable = can_receive(end)
        if isinstance(reachable, Deny):
            return reachable
    most = policy.sendable_types(sender, recipient.handle, rule)
    types = most if requested.types is None else requested.types
    if types and types <= most:
        return GrantedChannel(sender, recipient, types)
    return deny(
        Code.MAIL_TYPE_DENIED,
        f"{sender.handle} -> {recipient.handle} can carry {', '.join(sorted(most)) or 'nothing'}, "
        f"not {', '.join(sorted(types - most))[:200] or 'an empty list of types'}",
        "leave types out for all that the channel can carry",
        rule=rule.label,
        allowed_types=sorted(most),
    )
