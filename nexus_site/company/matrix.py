"""Which agents may write to each other, as a table in the language of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from orgchart.policy.compiled import Agent, ContactRule, Policy
from orgchart.policy.vocabulary import BOARD, Relation

MOST = 40
"""Rows and columns of one page; a larger company is shown by role, or one group at a time."""
LINKED = 20
"""Rows up to which every cell is a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One sender and one recipient: the types that `send_mail` may carry, and under what."""

    sender: str
    recipient: str
    types: Sequence[str] = ()
    rule: ContactRule | None = None

    @property
    def is_self(self) -> bool:
        """Whether both are the same."""
        return self.sender == self.recipient

    @property
    def kind(self) -> str:
        """What its colour says."""
        if self.rule is None or not self.types:
            return "none"
        if self.rule.needs_contract:
            return "contract"
        return "own" if self.rule.relation is Relation.OWN else "open"

    @property
    def words(self) -> str:
        """The cell as a sentence, for readers and for the pointer."""
        names = {"sender": self.sender, "recipient": self.recipient}
        if self.kind == "none":
            return gettext("%(sender)s may not write to %(recipient)s") % names
        sentence = ngettext(
            "%(sender)s may write to %(recipient)s, %(count)s type: %(types)s",
            "%(sender)s may write to %(recipient)s, %(count)s types: %(types)s",
            len(self.types),
        ) % {**names, "count": len(self.types), "types": ", ".join(self.types)}
        if self.kind == "open":
            return sentence
        under = (
            gettext("under a contract") if self.kind == "contract" else gettext("own agents only")
        )
        return f"{sentence}, {under}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The whole table: its columns, and each sender with its row of cells."""

    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    left_out: int = 0

    @property
    def is_large(self) -> bool:
        """Whether refused cells are shown without a link: most cells are, and a link is long."""
        return len(self.rows) > LINKED


def of_agents(policy: Policy, group: str = "") -> Matrix:
    """The matrix of active agents, of one group or of all."""
    agents = [a for a in policy.agents.values() if a.active and group in ("", a.group)]
    shown = sorted(agents, key=lambda a: (policy.level_of(a), a.handle))[:MOST]
    names = [a.handle for a in shown] + [BOARD]
    rows = [(a.handle, [agent_cell(policy, a, to) for to in names]) for a in shown]
    return Matrix(names=names, rows=rows, left_out=len(agents) - len(shown))


def agent_cell(policy: Policy, sender: Agent, to: str) -> Cell:
    """What one agent may write to another, or to the Board."""
    rule = policy.rule_between(sender, policy.party(to))
    types = policy.sendable_types(sender, to, rule) if rule else ()
    return Cell(sender=sender.handle, recipient=to, types=sorted(types), rule=rule)


def of_roles(policy: Policy) -> Matrix:
    """The matrix of roles, as the contact rules have it."""
    roles = sorted(policy.roles.values(), key=lambda role: (role.level, role.name))
    shown = roles[:MOST]
    names = [role.name for role in shown] + [BOARD]
    rows = [(name, [role_cell(policy, name, to) for to in names]) for name in names[:-1]]
    return Matrix(names=names, rows=rows, left_out=len(roles) - len(shown))


def role_cell(policy: Policy, sender: str, to: str) -> Cell:
    """What holders of one role may write to holders of another."""
    rule = policy.contacts.get((sender, to))
    types: Iterable[str] = ()
    if rule is not None:
        carried = policy.carried_types(rule)
        types = [name for name in carried if not policy.mail_types[name].issued_by]
    return Cell(sender=sender, recipient=to, types=sorted(types), rule=rule)
