"""The packs of the team, of the groups and of the constitution say what is specified."""

from typing import Any

from orgchart.policy.vocabulary import Office
from tests.oracle import delegation, tasks
from tests.oracle.reading import ORGANISATIONS, agents, read, roles


class TestDevTeam:
    def test_has_the_roles_of_appendix_a(self):
        assert tuple(roles("dev-team")) == tasks.ROLES

    def test_has_an_agent_for_each_role_and_a_second_backend_leader(self):
        found = {handle: row["role"] for handle, row in agents("dev-team").items()}
        assert found == {role: role for role in tasks.ROLES} | {
            "backend-leader-2": "backend-leader"
        }

    def test_lets_the_team_lead_alone_force(self):
        leads = {name for name, role in roles("dev-team").items() if role.get("task_lead")}
        assert leads == {"team-lead"}

    def test_maps_every_task_type_to_a_role(self):
        claimed = [t for role in self.permissions().values() for t in role["claim_task_type"]]
        assert set(claimed) == set(tasks.TASK_TYPES)

    def test_maps_what_is_specified(self):
        permissions = self.permissions()
        for task_type, takers in tasks.TYPE_ROLES.items():
            found = {n for n, p in permissions.items() if task_type in p["claim_task_type"]}
            assert found == takers
        for name, types in tasks.MUST_CLAIM.items():
            assert types <= set(permissions[name]["claim_task_type"])

    def test_lets_every_role_update_its_own_and_comment(self):
        for permissions in self.permissions().values():
            assert permissions["update_own_tasks"] is True
            assert permissions["comment_on_all_tasks"] is True

    def test_wants_deployments_approved_and_is_the_only_one_that_wants_any(self):
        """Which types is the pack's own choice (Spec: tasks 44)."""
        wanted = {
            name: read(name, "organisation.yaml")["settings"].get("approval_task_types")
            for name in ORGANISATIONS
        }
        assert {name: types for name, types in wanted.items() if types} == {
            "dev-team": ["deployment"]
        }
        assert "deployment" in tasks.TASK_TYPES

    @staticmethod
    def permissions() -> dict[str, Any]:
        return {name: role["permissions"] for name, role in roles("dev-team").items()}


class TestSoloQueue:
    def test_gives_every_agent_its_address(self):
        found = {h: f"{row['group']}.{row['name']}" for h, row in agents("soloqueue").items()}
        assert found == {handle: address for address, handle in delegation.HANDLES.items()}

    def test_has_one_leader_in_each_group(self):
        leaders = {
            row["group"]: f"{row['group']}.{row['name']}"
            for row in agents("soloqueue").values()
            if row["is_leader"]
        }
        assert leaders == delegation.LEADERS
        assert sum(row["is_leader"] for row in agents("soloqueue").values()) == 2

    def test_keeps_members_from_delegating(self):
        for group in delegation.LEADERS:
            assert read("soloqueue", f"groups/{group}.yaml")["member_delegation"] is False

    def test_gives_skills_where_they_are_listed(self):
        found = {
            f"{row['group']}.{row['name']}": tuple(row["skills"])
            for row in agents("soloqueue").values()
            if row.get("skills")
        }
        assert found == delegation.SKILLS

    def test_resolves_the_name_of_the_specified_example(self):
        aliases = read("soloqueue", "organisation.yaml")["aliases"]
        wanted = {old: delegation.HANDLES[new] for old, new in delegation.ALIASES.items()}
        assert aliases == wanted


class TestConstitution:
    def test_gives_each_office_to_one_role_and_each_role_to_one_agent(self):
        offices = {name: role["offices"] for name, role in roles("constitution").items()}
        assert offices == {
            "analyst": ["ANALYST"],
            "planner": ["PLANNER"],
            "implementer": ["IMPLEMENTER"],
            "reviewer": ["REVIEWER"],
            "tester": ["TESTER"],
            "conductor": ["CONDUCTOR"],
        }
        assert {row["role"] for row in agents("constitution").values()} == set(offices)
        assert {office for held in offices.values() for office in held} == set(Office)

    def test_lets_mail_go_up_and_in_groups_alone_answers_come_down(self):
        for name in ("constitution", "soloqueue"):
            protocol = read(name, "mail-protocol.yaml")
            up = [c for c in protocol["contacts"] if c["types"] == ["escalation"]]
            down = [c for c in protocol["contacts"] if c["types"] == ["info"]]
            assert len(up) + len(down) == len(protocol["contacts"])
            answered = set() if name == "constitution" else {(c["from"], c["to"]) for c in up}
            assert {(c["to"], c["from"]) for c in down} == answered
            assert all(c["relation"] == "own" for c in protocol["contacts"])
            assert protocol["board"] == []
            answers = [] if name == "constitution" else ["send_mail"]
            assert all(
                role["tools"] == (["escalate"] if role["kind"] == "worker" else answers)
                for role in roles(name).values()
            )
