"""An org_change contract that a person names in place of a second person (Spec: people 34)."""

from __future__ import annotations

from datetime import datetime

from contracts.approvals import authorisations
from contracts.issuing.changes import SoughtLine
from contracts.vocabulary import OrgAct
from core.actors import Person
from core.decision import Allow, Code, Denied, Deny, refuse, require
from governance.staff import rules
from governance.staff.named_acts import NamedAct, acts_between
from orgchart import catalogue
from orgchart.policy.compiled import Agent, Policy

RULE = "a contract in place of the second person (spec: people 34)"


def allow_by_contract(person: Person, before: Policy, after: Policy, now: datetime) -> Allow:
    """Use up the lines of the named contract that allow exactly this change; each only once.

    The change is also one that the contract's assignee could make: no contract gives more than its
    holder has. Raises Denied AUTHORISATION_REQUIRED, LEVEL_DENIED, INVALID_PARAMS.
    """
    holder = authorisations.lock_org_change(
        contract_id=person.contract, organisation_id=before.organisation_id, now=now
    )
    acts = acts_between(before, after)
    if isinstance(acts, Deny):
        raise Denied(acts)
    for act in acts:
        _require_within(before.by_id[holder], act, before, after)
        sought = _line(act, before, after)
        if not authorisations.use_line(contract_ids=[person.contract], sought=sought, now=now):
            raise refuse(
                Code.AUTHORISATION_REQUIRED,
                f"{person.contract} has no unused line {sought}",
                "name a contract that allows all of this change, or leave it out: a second person "
                "then confirms the change",
                rule=RULE,
            )
    return Allow(RULE)


def _line(act: NamedAct, before: Policy, after: Policy) -> SoughtLine:
    """The line that allows the act; hiring and moving give role and place."""
    if act.act not in (OrgAct.HIRE, OrgAct.MOVE):
        return SoughtLine(act.act, act.subject)
    old = before.agents.get(act.subject)
    new = after.agents[act.subject]
    return rules.line_of(
        act.act,
        act.subject,
        after.role_of(new),
        old,
        superior=new.superior,
        co_managers=new.managers[1:],
        skills=new.skills if act.act is OrgAct.HIRE else (),
        group=new.group,
        is_leader=new.is_leader,
    )


def _require_within(holder: Agent, act: NamedAct, before: Policy, after: Policy) -> None:
    """Raise Denied for what the contract's holder itself could not do."""
    new = after.agents[act.subject]
    role = after.role_of(new)
    old = before.agents.get(act.subject)
    if old is not None:
        require(rules.can_manage(holder, old, before))
    if act.act is OrgAct.HIRE:
        require(rules.can_name(new.handle, role, before))
    if old is None or old.role != new.role:
        require(rules.can_give_role(holder, role, before))
    if new.system_prompt != (old.system_prompt if old else ""):
        require(rules.can_instruct(new, role))
    added = new.skills - (old.skills if old else frozenset())
    require(rules.can_give_skills(added, catalogue.known()))
    if old is not None:
        require(rules.can_describe(added))
    co_managers = set(new.managers[1:]) - set(old.managers if old else ())
    require(rules.can_make_co_managers(holder, co_managers))
