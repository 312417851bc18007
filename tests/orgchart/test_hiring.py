"""Where an agent can be placed: the same answer as the invariants give to the change itself."""

from dataclasses import replace

import pytest

from core.decision import Allow
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.building import build_policy
from orgchart.policy.hiring import can_be_under, newcomer, placed, places_of
from orgchart.policy.invariants import violations
from orgchart.policy.vocabulary import BOARD
from tests.oracle.reading import PACKS

POLICIES = {
    name: policy_of(sound_pack(PACKS / name)) for name in ("nexus", "dev-team", "soloqueue")
}
NEXUS = POLICIES["nexus"]
EVERY = [
    (pack, role, superior)
    for pack, policy in POLICIES.items()
    for role in policy.roles
    for superior in (*policy.agents, BOARD)
]


def with_agent(policy, agent):
    agents = [*(a for a in policy.agents.values() if a.handle != agent.handle), agent]
    return build_policy(
        organisation_id=1,
        organisation=policy.organisation,
        version=2,
        roles=list(policy.roles.values()),
        agents=agents,
        groups=list(policy.groups.values()),
        mail_types=list(policy.mail_types.values()),
        contacts=list(policy.contacts.values()),
        aliases=policy.aliases,
        settings=policy.settings,
        enabled_modes=policy.enabled_modes,
    )


@pytest.mark.parametrize(("pack", "role", "superior"), EVERY)
def test_says_of_every_role_and_superior_what_the_invariants_would(pack, role, superior):
    policy = POLICIES[pack]
    new = replace(newcomer(role), handle="newcomer_9")
    saved = violations(with_agent(policy, placed(new, superior)))
    assert isinstance(can_be_under(policy, new, superior), Allow) == (saved == []), saved


def test_never_offers_a_place_from_which_nobody_can_be_reached():
    for policy in POLICIES.values():
        for role in policy.roles:
            for place in places_of(policy, newcomer(role)):
                assert not place.is_possible or place.contacts, (role, place)


def test_tells_nobody_whom_an_impossible_place_would_reach():
    places = [place for role in NEXUS.roles for place in places_of(NEXUS, newcomer(role))]
    assert {place.is_possible for place in places} == {True, False}
    assert {place.contacts for place in places if not place.is_possible} == {()}


def test_says_that_a_worker_manages_no_agent():
    refused = can_be_under(NEXUS, newcomer("backend_worker"), "qa_worker")
    assert refused.message == "qa_worker is a worker and manages no agent"


def test_an_agent_is_never_moved_below_itself():
    agents = NEXUS.agents
    moved = replace(agents["it_manager"], role="ceo")
    policy = with_agent(NEXUS, moved)
    refused = can_be_under(policy, policy.agents["ceo"], "it_manager")
    assert not isinstance(refused, Allow)
    worker = replace(agents["backend_worker"], role="it_manager")
    refused = can_be_under(
        with_agent(NEXUS, worker), replace(moved, role="backend_worker"), worker.handle
    )
    assert "reports to it_manager" in refused.message


def test_an_agent_reports_into_no_other_group():
    """Spec: groups 14."""
    solo = POLICIES["soloqueue"]
    developer, leader = solo.agents["coding_developer"], solo.agents["coding_leader"]
    refused = can_be_under(solo, developer, "investment_leader")
    assert "is of the group investment" in refused.message
    assert isinstance(can_be_under(solo, developer, "coding_leader"), Allow)
    assert isinstance(can_be_under(solo, replace(developer, group=""), "investment_leader"), Allow)
    assert not leader.is_across_groups(solo.agents["investment_leader"])


def test_a_deactivated_superior_is_none():
    gone = replace(NEXUS.agents["it_manager"], active=False)
    refused = can_be_under(with_agent(NEXUS, gone), newcomer("backend_worker"), "it_manager")
    assert "no active agent" in refused.message


def test_asking_leaves_the_policy_as_it_was():
    before = dict(NEXUS._contacts)
    places_of(NEXUS, newcomer("backend_worker"))
    assert NEXUS._contacts == before
