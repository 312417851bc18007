"""The compiled Policy: one immutable value that every decision of an organisation reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orgchart.policy.parties import BOARD_PARTY, Board, Party, chain_of
from orgchart.policy.parties import Agent as Agent  # noqa: PLC0414  imported with the Policy
from orgchart.policy.vocabulary import BOARD, ContractScope, Kind, Office, Relation, ToolMode


@dataclass(frozen=True, slots=True)
class FileScopes:
    """A role's paths in the company tree (Spec: files 1); '/' ends a folder.

    `{agent}` is the handle of the agent that holds the role, `{worker}` in what it reads and writes
    that of each agent that it manages. `deny_write` is what the compiled role reads at most,
    whatever its row says.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    deny_write: tuple[str, ...] = ()
    contract: ContractScope = ContractScope.NONE


@dataclass(frozen=True, slots=True)
class Role:
    """What its holders may do. `tools` are the bound ones; `denied_tools` win over everything."""

    name: str
    title: str
    level: int
    kind: Kind
    tools: frozenset[str]
    denied_tools: frozenset[str] = frozenset()
    summary: str = ""
    prohibitions: tuple[str, ...] = ()
    files: FileScopes = FileScopes()
    task_lead: bool = False
    permissions: Mapping[str, Any] = field(default_factory=dict)
    offices: frozenset[Office] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """A team of agents (Spec: groups 1)."""

    slug: str
    name: str
    context: str = ""
    member_delegation: bool = False


@dataclass(frozen=True, slots=True)
class MailTypeRule:
    """The ceiling of a mail type (Spec: mail 5): who may send it at all, and how.

    `senders` are names of roles and of kinds, so that a role added later has the ceiling of its
    kind (Spec: organisation 4).
    """

    name: str
    senders: frozenset[str] | None
    issued_by: tuple[str, ...] = ()
    to_superior: bool = False
    description: str = ""

    def may_come_from(self, role: Role) -> bool:
        """Whether holders of the role may send it at all."""
        return self.senders is None or not self.senders.isdisjoint({role.name, role.kind.value})


@dataclass(frozen=True, slots=True)
class ContactRule:
    """One role may write to another. `types` empty: none; None: all that its ceiling gives."""

    sender: str
    recipient: str
    types: frozenset[str] | None = None
    needs_contract: bool = False
    relation: Relation = Relation.ANY

    @property
    def label(self) -> str:
        """How people and the ledger name the rule."""
        return f"contact {self.sender} -> {self.recipient}"


@dataclass(frozen=True, slots=True)
class ToolRestriction:
    """The modes left of one tool for the organisation, a role or an agent; none: no use at all."""

    scope: str
    tool: str
    modes: frozenset[ToolMode]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Policy:
    """An organisation's roles, agents and rules, compiled, numbered by `version`.

    Lookups are dictionary reads; nothing here does I/O. Keys of `names` are handles, addresses and
    aliases; keys of `contacts` are (sender role, recipient role). `holders` lists the active agents
    of each role, `below` the agents whose direct or co-manager an agent is.
    """

    organisation_id: int
    organisation: str
    version: int
    roles: Mapping[str, Role]
    agents: Mapping[str, Agent]
    names: Mapping[str, str]
    groups: Mapping[str, Group]
    mail_types: Mapping[str, MailTypeRule]
    contacts: Mapping[tuple[str, str], ContactRule]
    enabled_modes: frozenset[ToolMode]
    settings: Mapping[str, Any]
    tool_restrictions: Mapping[tuple[str, str], frozenset[ToolMode]] = field(default_factory=dict)
    ceilings: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_id: Mapping[int, Agent] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    holders: Mapping[str, frozenset[str]] = field(default_factory=dict)
    below: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Worked out once; a copy of a policy begins without them.
    _contacts: dict[str, tuple[str, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _sendable: dict[tuple[str, str, bool], frozenset[str]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def resolve(self, name: str) -> Agent | None:
        """The agent of a handle, address or alias, exactly as written; None if there is none."""
        handle = self.names.get(name)
        return None if handle is None else self.agents[handle]

    def role_of(self, agent: Agent) -> Role:
        """The agent's role."""
        return self.roles[agent.role]

    def level_of(self, agent: Agent) -> int:
        """The agent's level; 1 is the top, the Board is 0."""
        return self.roles[agent.role].level

    def superior_of(self, agent: Agent) -> Party:
        """The direct superior: the nearest active agent above, or the Board."""
        return self.party(agent.superior)

    def chain_above(self, agent: Agent) -> tuple[Agent, ...]:
        """The agents above one, nearest first; above the last is the Board."""

        def superior(handle: str) -> str | None:
            at = agent if handle == agent.handle else self.agents.get(handle)
            return None if at is None else at.superior

        chain = chain_of(agent.handle, superior)
        return tuple(self.agents[handle] for handle in chain if handle in self.agents)

    def commands(self, one: Agent, other: Agent) -> bool:
        """Whether one agent is in the chain above another; as `chain_above`, without a list."""
        at: Agent | None = other
        for _ in self.agents:  # no chain is longer, not even a circle
            if at is None or at.superior == one.handle:
                break
            at = self.agents.get(at.superior)
        return at is not None and at.superior == one.handle and one.handle != other.handle

    def is_above(self, one: Agent, other: Agent) -> bool:
        """Whether one agent is a direct or co-manager of another, or above one of these."""
        managers = [self.agents[handle] for handle in other.managers if handle in self.agents]
        return one in managers or any(self.commands(one, each) for each in managers)

    def is_own(self, one: Agent, other: Agent) -> bool:
        """Whether one of the two is the other's direct or co-manager, deactivated ones included."""
        return one.handle in (other.reports_to, *other.managers) or other.handle in (
            one.reports_to,
            *one.managers,
        )

    def party(self, handle: str) -> Party:
        """The agent of a handle; the Board where no agent has it."""
        return self.agents.get(handle, BOARD_PARTY)

    def rule_between(self, sender: Agent, recipient: Party) -> ContactRule | None:
        """The contact rule that covers this pair, or None: what is not listed is refused."""
        if isinstance(recipient, Board):
            return self.contacts.get((sender.role, BOARD))
        if sender.handle == recipient.handle:
            return None
        rule = self.contacts.get((sender.role, recipient.role))
        if rule is None or (rule.relation is Relation.OWN and not self.is_own(sender, recipient)):
            return None
        return rule

    def types_from(self, role: str) -> frozenset[str]:
        """Every mail type that a role may send at all (Spec: mail 5)."""
        return self.ceilings.get(role, frozenset())

    def carried_types(self, rule: ContactRule) -> frozenset[str]:
        """The types that a contact rule carries, by whichever tool: the sender's ceiling ∩ rule."""
        ceiling = self.types_from(rule.sender)
        return ceiling if rule.types is None else ceiling & rule.types

    def sendable_types(self, sender: Agent, recipient: str, rule: ContactRule) -> frozenset[str]:
        """What send_mail may carry on this pair: carried types, without what only tools issue.

        A type that goes to the direct superior only is left out towards anybody else. `rule` is one
        of this policy's.
        """
        is_superior = recipient == sender.superior
        key = (rule.sender, rule.recipient, is_superior)
        known = self._sendable.get(key)
        if known is None:
            known = self._sendable[key] = frozenset(
                name
                for name in self.carried_types(rule)
                if not self.mail_types[name].issued_by
                and (not self.mail_types[name].to_superior or is_superior)
            )
        return known

    def carries_up(self, agent: Agent, mail_type: str) -> bool:
        """Whether a type reaches the agent's superior without a contract, by whichever tool."""
        above = self.agents.get(agent.superior)
        rule = self.rule_between(agent, above) if above else None
        return (
            rule is not None and not rule.needs_contract and mail_type in self.carried_types(rule)
        )

    def restricted_modes(self, agent: Agent, tool: str) -> frozenset[ToolMode] | None:
        """The modes that restrictions leave of a tool for this agent; None without restriction."""
        if not self.tool_restrictions:
            return None
        left: frozenset[ToolMode] | None = None
        for scope in ("organisation", f"role:{agent.role}", f"agent:{agent.handle}"):
            modes = self.tool_restrictions.get((scope, tool))
            if modes is not None:
                left = modes if left is None else left & modes
        return left

    def contacts_of(self, sender: Agent) -> tuple[str, ...]:
        """Handles this agent may write to, sorted; `board` where it may. Worked out once."""
        known = self._contacts.get(sender.handle)
        if known is not None:
            return known
        found: set[str] = set()
        for role, holders in self.holders.items():
            rule = self.contacts.get((sender.role, role))
            if rule is not None:
                near = rule.relation is Relation.OWN
                found |= holders & self.near(sender) if near else holders
        found.discard(sender.handle)
        if (sender.role, BOARD) in self.contacts:
            found.add(BOARD)
        self._contacts[sender.handle] = known = tuple(sorted(found))
        return known

    def near(self, agent: Agent) -> frozenset[str]:
        """The managers of an agent and those below it: all that `is_own` is true for."""
        return self.below.get(agent.handle, frozenset()) | {agent.reports_to, *agent.managers}

    def workers_of(self, manager: Agent) -> tuple[Agent, ...]:
        """Agents that this one manages directly or together with another."""
        return tuple(a for a in self.agents.values() if manager.handle in a.managers)
