"""Whose text an agent may read, in whatever room it was written; pure."""

from __future__ import annotations

from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent, ContactRule, Policy, Role
from orgchart.policy.parties import Board, Party
from orgchart.policy.vocabulary import Kind, Visibility

REPORTS = "reports/"

RULE = "a task's text is a message from its writer (spec: tasks 33)"


def can_read_text(policy: Policy, writer: Agent, reader: Agent) -> Decision:
    """Decide whether one agent may read what another wrote (Spec: tasks 33).

    Its own text, text of those who may contact it without a contract, and text of those below it.
    """
    rule = rule_of_reading(policy, writer, reader)
    if rule:
        return Allow(rule)
    return deny(
        Code.CONTACT_DENIED,
        f"{writer.handle} may not contact {reader.handle}, which cannot read its text",
        "read and change tasks that task_list shows",
        rule=RULE,
    )


def rule_of_reading(policy: Policy, writer: Agent, reader: Agent) -> str:
    """The rule by which one agent may read what another wrote; empty: it may not.

    For those who ask about every agent: no decision is made of each answer.
    """
    if policy.settings["task_visibility"] == Visibility.ALL:
        return "task_visibility: all"
    if writer.handle == reader.handle:
        return "own text"
    if may_contact(policy, writer, reader):
        return f"contact {writer.role} -> {reader.role}"
    return "chain of command" if policy.commands(reader, writer) else ""


def readable_writers(policy: Policy, reader: Agent) -> list[int]:
    """The ids of all whose text an agent may read."""
    return [
        writer.id for writer in policy.agents.values() if rule_of_reading(policy, writer, reader)
    ]


def filing_scope(role: Role) -> str:
    """The scope, such as `reports/tech/`, that takes the reports of a role's department.

    A worker's own is one that it writes; empty: the role has none (Spec: files 13).
    """
    files = role.files
    scopes = files.write if role.kind is Kind.WORKER else (*files.write, *files.read)
    folders = (scope for scope in scopes if scope.startswith(REPORTS) and scope.endswith("/"))
    return next((scope for scope in folders if scope.count("/") == 2), "")


def can_tell(policy: Policy, writer: Party, reader: Agent) -> Decision:
    """Decide whether what one party says of an act on another's work reaches that agent.

    (Spec: mail 43) The Board's words do, and those of an agent with a contact rule to the reader;
    the act itself, under a contract, opens a rule that needs one.
    """
    if isinstance(writer, Board):
        return Allow("the Board writes to every agent")
    if policy.rule_between(writer, reader) is not None:
        return Allow(f"contact {writer.role} -> {reader.role}")
    return can_read_text(policy, writer, reader)


def may_contact(policy: Policy, sender: Agent, recipient: Agent) -> bool:
    """Whether a contact rule is open to this pair without a contract."""
    return is_open(policy, policy.rule_between(sender, recipient))


def is_open(policy: Policy, rule: ContactRule | None) -> bool:
    """Whether a contact rule carries anything without a contract."""
    return rule is not None and not rule.needs_contract and bool(policy.carried_types(rule))
