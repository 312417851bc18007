"""The shipped packs say what is specified, by tables that were written without them.

Pure: YAML in, the policy's own questions asked, no database.
"""

import pytest

from core.decision import Allow, Decision, Deny
from mailroom.rules import Channel, can_mail, find_party
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.paths import can_touch
from orgchart.policy.vocabulary import Access
from tests.oracle import files, mail, org, tools
from tests.oracle.reading import ORGANISATIONS, agents, compiled_nexus, read, role_of, roles


@pytest.fixture(scope="module")
def nexus() -> Policy:
    return compiled_nexus()


class TestNexusRoles:
    def test_are_the_nine_of_the_overview(self):
        assert tuple(roles("nexus")) == (*org.AGENTS, "hr_worker")
        assert set(agents("nexus")) == set(org.AGENTS)

    @pytest.mark.parametrize("role", org.AGENTS)
    def test_bind_the_tools_of_the_matrix(self, role):
        bound = roles("nexus")[role]["tools"]
        assert len(bound) == len(set(bound))
        assert set(bound) - set(roles("nexus")[role]["denied_tools"]) == tools.BOUND[role]

    @pytest.mark.parametrize("agent", org.AGENTS)
    def test_stand_where_the_chain_of_command_puts_them(self, agent):
        found = agents("nexus")[agent]
        role = roles("nexus")[found["role"]]
        place = (
            role["level"],
            role["kind"],
            found["reports_to"],
            tuple(found.get("co_managers", ())),
        )
        assert found["role"] == agent
        assert place == org.CHAIN[agent]

    def test_say_their_prohibitions(self):
        assert all(role["prohibitions"] and role["summary"] for role in roles("nexus").values())

    def test_let_the_it_manager_alone_force(self):
        leads = {name for name, role in roles("nexus").items() if role.get("task_lead")}
        assert leads == {org.IT}

    def test_carry_the_old_names(self):
        assert read("nexus", "organisation.yaml")["aliases"] == org.ALIASES

    def test_enable_coding_in_nexus_only(self):
        enabled = {
            name: read(name, "organisation.yaml")["settings"].get("enabled_modes", ["chat_safe"])
            for name in ORGANISATIONS
        }
        assert enabled.pop("nexus") == ["chat_safe", "coding"]
        assert set(map(tuple, enabled.values())) == {("chat_safe",)}


def _channels(state: str, sender: Agent, recipient: Agent, mail_type: str) -> list[Channel]:
    """The open grants that a contract in this state leaves: none once it is over."""
    one, other, types = sender.id, recipient.id, frozenset({mail_type})
    match state:
        case "pending" | "in_progress" | "review":
            return [Channel("CON-1", one, other, types)]
        case "other_pair":
            return [Channel("CON-1", one + 100, other, types)]
        case "other_way":
            return [Channel("CON-1", other, one, types)]
        case "other_type":
            return [Channel("CON-1", one, other, frozenset({"info"}))]
        case _:
            return []


def _decide(policy: Policy, sender: str, recipient: str, mail_type: str, state: str) -> Decision:
    one = policy.agents[sender]
    other = find_party(recipient, policy)
    if isinstance(other, Deny):
        return other
    return can_mail(one, other, mail_type, policy, _channels(state, one, other, mail_type))


class TestNexusMail:
    def test_declares_the_types_of_the_specification(self, nexus):
        assert set(nexus.mail_types) == set(mail.MAIL_TYPES)

    @pytest.mark.parametrize("role", org.AGENTS)
    def test_keeps_each_type_to_its_senders(self, nexus, role):
        assert nexus.types_from(role) == mail.CEILING[role]

    def test_leaves_to_tools_what_tools_issue(self, nexus):
        issued = {name: t.issued_by for name, t in nexus.mail_types.items() if t.issued_by}
        assert issued == mail.ISSUED_BY

    @pytest.mark.parametrize("sender", org.AGENTS)
    def test_goes_where_it_is_allowed(self, nexus, sender):
        wrong = []
        for one, other, mail_type, state, outcome in mail.table():
            if one == sender:
                decision = _decide(nexus, one, other, mail_type, state)
                answer = "OK" if isinstance(decision, Allow) else str(decision.code)
                if answer != outcome:
                    wrong.append((other, mail_type, state, outcome, answer))
        assert wrong == []

    def test_escalates_to_the_direct_superior(self, nexus):
        above = {a.handle: a.superior for a in nexus.agents.values() if a.superior != org.BOARD}
        assert above == mail.ESCALATES_TO


class TestNexusFiles:
    @pytest.mark.parametrize("role", org.AGENTS)
    def test_reach_what_is_specified(self, nexus, role):
        wrong = []
        for who, path, scope, cell in files.table():
            if who == role:
                found = "".join(
                    letter
                    if isinstance(
                        can_touch(
                            path,
                            access,
                            agent=nexus.agents[role],
                            files=nexus.roles[role].files,
                            contract_scope=scope,
                        ),
                        Allow,
                    )
                    else "-"
                    for letter, access in (("r", Access.READ), ("w", Access.WRITE))
                )
                if found != cell:
                    wrong.append((path, scope, cell, found))
        assert wrong == []

    @pytest.mark.parametrize("organisation", ORGANISATIONS)
    @pytest.mark.parametrize("name", [".env", ".env.local", "tls.pem", "id_rsa", "credentials"])
    def test_keep_credentials_from_everyrole_of(self, organisation, name):
        for role, row in roles(organisation).items():
            agent = Agent(id=1, handle="somebody", role=role, title="")
            decision = can_touch(
                f"agents/somebody/{name}",
                Access.READ,
                agent=agent,
                files=role_of(role, row).files,
            )
            assert isinstance(decision, Deny), role
