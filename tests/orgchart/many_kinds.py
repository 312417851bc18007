"""A company in which each worker is of a kind of its own."""

from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, MailTypeRule, Policy, Role
from orgchart.policy.vocabulary import BOARD, Kind, Relation


def of_many_kinds(workers: int) -> Policy:
    """One executive, and as many roles of workers as there are workers."""
    roles = [Role("ceo", "CEO", 1, Kind.EXECUTIVE, frozenset())]
    agents = [Agent(1, "ceo", "ceo", "CEO", managers=(BOARD,))]
    contacts = []
    for number in range(workers):
        name = f"w{number}"
        roles.append(Role(name, name, 2, Kind.WORKER, frozenset()))
        agents.append(Agent(number + 2, name, name, name, managers=("ceo",)))
        contacts += [
            ContactRule("ceo", name, relation=Relation.OWN),
            ContactRule(name, "ceo", relation=Relation.OWN),
        ]
    return build_policy(
        organisation_id=1,
        organisation="many",
        version=1,
        roles=roles,
        agents=agents,
        groups=[],
        mail_types=[MailTypeRule("info", None)],
        contacts=contacts,
        aliases={},
        settings={"task_visibility": "contacts"},
        enabled_modes=frozenset(),
    )
