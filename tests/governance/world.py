"""Contracts that let HR change the organisation."""

from contracts.issuing.changes import NamedChange
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.services import accept_contract
from contracts.vocabulary import ContractKind, OrgAct
from tests.documents.world import NOW, caller_of

AGENTS = (
    "ceo", "it_manager", "hr_manager", "product_manager", "backend_worker", "frontend_worker",
    "devops_worker", "qa_worker", "research_worker",
)  # fmt: skip
EVERYTHING = (
    "hire backend_two",
    *(f"{act} {agent}" for act in ("describe", "deactivate") for agent in AGENTS),
    *(f"move {agent} co_managers={','.join(AGENTS)}" for agent in AGENTS),
    *(f"move {agent} reports_to={above}" for agent in AGENTS for above in AGENTS),
)
"""Lines of each act on each agent, and for moves below each other one."""


def named(change: str) -> NamedChange:
    """One line, from its words."""
    act, *words = change.split()
    names = [word for word in words if "=" not in word]
    more = dict(word.split("=") for word in words if "=" in word)
    lists = {key: tuple(more.pop(key, "").split(",")) for key in ("co_managers", "skills")}
    given = {key: tuple(filter(None, value)) for key, value in lists.items()}
    return NamedChange(OrgAct(act), *names, **more, **given)


def authorise(organisation, *changes: str) -> str:
    """The CEO lets HR carry out changes, each written as `act subject`, with what it gives:
    `hire kim qa_worker reports_to=it_manager co_managers=ceo,hr_manager skills=plan`.
    """
    issued = issue_contract(
        caller=caller_of(organisation, "ceo"),
        draft=ContractDraft(
            to="hr_manager",
            title="Grow",
            body="Hire.",
            kind=ContractKind.ORG_CHANGE,
            changes=[named(change) for change in changes],
        ),
        tool="generate_contract",
        now=NOW,
    )
    accept_contract(
        contract_id=issued["contract_id"],
        expected_version=None,
        caller=caller_of(organisation, "hr_manager"),
        now=NOW,
    )
    return issued["contract_id"]
