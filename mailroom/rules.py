"""Which mails an agent may send to which party (Spec: mail 19, mail 8); pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.decision import NAMED, Allow, Code, Decision, Deny, deny, listed
from documents.rules import is_denied_to, is_unread_code
from orgchart.policy.compiled import Agent, ContactRule, Policy
from orgchart.policy.names import unknown_agent
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy.paths import can_touch, expand, is_within
from orgchart.policy.vocabulary import BOARD, ESCALATION, Access


@dataclass(frozen=True, slots=True)
class Channel:
    """An open grant: one agent may send another these types while its contract is active."""

    contract_ref: str
    sender_id: int
    recipient_id: int
    types: frozenset[str]


REPORT = "report"
"""Contacts that a refusal names; the prompt lists them all."""
MOST_WAITING = 200
"""Escalations of a thread that wait for an answer (Spec: escalation 20)."""

VIOLATIONS = frozenset({Code.CONTACT_DENIED, Code.MAIL_TYPE_DENIED, Code.CONTRACT_REQUIRED})
"""Refusals after which the sender also gets a system mail (Spec: mail 22)."""


def find_recipient(name: str, policy: Policy, known: Collection[str] = ()) -> Agent | Deny:
    """The agent of a name, active or not, or why there is none; `board` is no agent.

    `known` are the names that a refusal may suggest: the contacts of who asks.
    """
    found = policy.resolve(name)
    if found is None:
        step = "write to one of your contacts, as your prompt lists them"
        return unknown_agent(name, step, code=Code.RECIPIENT_UNKNOWN, known=known)
    return found


def can_receive(recipient: Party) -> Decision:
    """A deactivated agent receives nothing.

    Asked after the contact check, so that only contacts learn of it (Spec: mail 19).
    """
    if recipient.active:
        return Allow("recipient is active")
    return deny(
        Code.RECIPIENT_INACTIVE,
        f"{recipient.handle} is deactivated",
        "ask your superior who took over its work",
        rule="recipient is active (spec: mail 21)",
    )


def find_party(name: str, policy: Policy, known: Collection[str] = ()) -> Party | Deny:
    """The agent of a name, or the Board; or why there is none."""
    return BOARD_PARTY if name == BOARD else find_recipient(name, policy, known)


def can_mail(
    sender: Agent,
    recipient: Party,
    mail_type: str,
    policy: Policy,
    channels: Sequence[Channel] = (),
) -> Decision:
    """Decide whether an agent may send a party a mail of this type (Spec: mail 19).

    Contact first, then whether the recipient is active (Spec: mail 19), then the type: prohibitions
    before allowances, and what no rule allows is refused. `channels` are the open grants of the
    contract that the mail names.
    """
    rule = policy.rule_between(sender, recipient)
    if rule is None:
        return _no_contact(sender, recipient.handle, policy)
    if not recipient.active:
        return can_receive(recipient)
    if mail_type not in policy.sendable_types(sender, recipient.handle, rule):
        return _type_refused(sender, recipient.handle, mail_type, rule, policy)
    if rule.needs_contract and not any(
        c.sender_id == sender.id and c.recipient_id == recipient.id and mail_type in c.types
        for c in channels
    ):
        issues = isinstance(recipient, Agent) and sender.handle in recipient.managers
        return deny(
            Code.CONTRACT_REQUIRED,
            f"{sender.handle} -> {recipient.handle} is open only under an active contract that "
            "grants this channel",
            "name such a contract in contract_ref (list_contracts shows yours), or issue one that "
            "grants it with create_contract"
            if issues
            else "name such a contract in contract_ref (list_contracts shows yours), or ask "
            f"{sender.superior} for one",
            rule=rule.label,
        )
    return _allow(rule.label)


_allow = lru_cache(maxsize=4096)(Allow)
"""An Allow of a rule, made once: most decisions name one of a few rules."""


def _no_contact(sender: Agent, recipient: str, policy: Policy) -> Deny:
    allowed = policy.contacts_of(sender)
    named = listed(allowed)
    return deny(
        Code.CONTACT_DENIED,
        f"Communication denied: {sender.handle} is not authorized to contact {recipient}. "
        f"Allowed contacts: {named or 'none'}",
        f"write to one of: {named}"
        if allowed
        else "you have no contacts now: go on with what you can do without them",
        rule=f"contacts of {sender.role} (spec: mail 8)",
        allowed_contacts=list(allowed[:NAMED]),
    )


def _type_refused(
    sender: Agent, recipient: str, mail_type: str, rule: ContactRule, policy: Policy
) -> Deny:
    kind = policy.mail_types.get(mail_type)
    if kind is not None and kind.issued_by:
        return deny(
            Code.MAIL_TYPE_DENIED,
            f"{mail_type} is never sent with send_mail: "
            f"it comes from {' or '.join(kind.issued_by)}",
            _issuing_tool(sender, kind.issued_by, policy),
            rule=f"{mail_type} is issued by a tool",
        )
    allowed = policy.sendable_types(sender, recipient, rule)
    return deny(
        Code.MAIL_TYPE_DENIED,
        f"Mail type '{mail_type[:32]}' not allowed for {sender.handle} -> {recipient}. "
        f"Allowed types: {', '.join(sorted(allowed)) or 'none'}",
        f"send one of: {', '.join(sorted(allowed))}"
        + ", under a contract that grants this channel" * rule.needs_contract
        if allowed
        else f"ask {sender.superior} to relay it",
        rule=f"{rule.label} ∩ types of {sender.role} (spec: mail 6)",
        allowed_types=sorted(allowed),
    )


def _issuing_tool(sender: Agent, issued_by: Sequence[str], policy: Policy) -> str:
    mine = [tool for tool in issued_by if tool in policy.roles[sender.role].tools]
    if mine:
        return f"use {' or '.join(mine)}"
    return f"ask {sender.superior}; your role has none of these tools"


def can_submit_by_mail(mail_type: str, contract_ref: str | None) -> Decision:
    """Decide whether a mail may submit the work of a contract: a report that names it."""
    if mail_type == REPORT and contract_ref:
        return Allow("a report submits its contract's work")
    return deny(
        Code.INVALID_PARAMS,
        "submits: only a mail of type report with contract_ref submits the work of a contract",
        "send it with type report and contract_ref, or leave submits out",
        rule="a report submits its contract's work",
        submits="only with type report and contract_ref",
    )


def can_attach(
    paths: Sequence[str],
    sender: Agent,
    recipient: Party,
    policy: Policy,
    contract_scope: Sequence[str] = (),
) -> Decision:
    """Every attachment must be inside what the sender may read (Spec: mail 26), no code for a
    recipient that reads none, and what it only reads nothing that the recipient is denied.

    Spec: mail 44.
    """
    for path in paths:
        decision = can_touch(
            path,
            Access.READ,
            agent=sender,
            files=policy.roles[sender.role].files,
            contract_scope=contract_scope,
        )
        if isinstance(decision, Deny):
            return Deny(
                decision.code,
                f"Attachment path '{path[:200]}' is outside sender's file scope: "
                f"{decision.message}",
                decision.next_action,
                decision.rule,
                decision.details,
            )
        if isinstance(recipient, Agent) and is_unread_code(path, recipient, policy):
            return deny(
                Code.SCOPE_DENIED,
                f"Attachment path '{path[:200]}' is code, and {recipient.handle} reads none",
                "write in the mail what the recipient needs to know of it",
                rule="code is attached for roles that read code (spec: mail 44)",
            )
        if isinstance(recipient, Agent) and _is_kept_from(path, sender, recipient, policy):
            return deny(
                Code.SCOPE_DENIED,
                f"Attachment path '{path[:200]}' is denied to {recipient.handle}, and "
                f"{sender.handle} may only read it",
                "write in the mail what the recipient needs to know of it",
                rule="what is denied to the recipient is not attached (spec: mail 44)",
            )
    return Allow("attachments in scope")


def _is_kept_from(path: str, sender: Agent, recipient: Agent, policy: Policy) -> bool:
    """Whether a path is denied to the recipient and no work of the sender's own."""
    own = expand(policy.roles[sender.role].files.write, sender)
    return is_denied_to(path, recipient, policy) and not any(is_within(path, each) for each in own)


def can_escalate_to(sender: Agent, policy: Policy) -> Decision:
    """Only up, only to the direct superior; the top agent has its notes to the Board.

    Spec: escalation 1.

    Where the superior is deactivated, the next above takes its place if the sender may write to it:
    a worker does not reach the top because its manager left (Spec: mail 15).
    """
    if sender.superior == BOARD:
        return deny(
            Code.LEVEL_DENIED,
            f"{sender.handle} has no superior agent",
            "write it down with write_note for the Board, or send the Board a report",
            rule="escalation goes one step up (spec: escalation 1)",
        )
    if not policy.carries_up(sender, ESCALATION):
        if not sender.orphaned:
            return _no_contact(sender, sender.superior, policy)
        return deny(
            Code.RECIPIENT_INACTIVE,
            f"{sender.handle} has no superior to escalate to: its own is deactivated, and "
            f"{sender.superior}, the next above, is not among its contacts",
            f"go on with what you can do: {sender.superior} knows that you need a superior",
            rule="escalation goes one step up (spec: escalation 1)",
        )
    return Allow("escalation to the direct superior (spec: escalation 1)")


def can_wait_with(waiting: int, sender: Agent) -> Decision:
    """Whether so many escalations of one thread may wait for their answer (Spec: escalation 20).

    One answer, a move and a deadline take the whole thread at once.
    """
    if waiting <= MOST_WAITING:
        return Allow("few enough for one answer (spec: escalation 20)")
    return deny(
        Code.QUOTA_EXCEEDED,
        f"{MOST_WAITING} escalations of {sender.handle} wait for an answer of {sender.superior}",
        "wait for the answer, which answers all of them; read_inbox shows it",
        rule="one answer answers a thread (spec: escalation 20)",
    )


def may_read_left_mail(reader: Agent, leaver: Agent | None) -> bool:
    """Whether an agent may read the unread mail of a deactivated one: the next above it may."""
    return leaver is not None and not leaver.active and leaver.superior == reader.handle
