"""Who is hired into `hr_worker` works on the first day: tables written without the pack."""

import shutil

import pytest

from core.decision import Allow
from mailroom.rules import can_mail
from orgchart.packs import review_pack
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from tests.oracle import org, tools
from tests.orgchart.world import PACKS

TO_SUPERIOR = {"report", "approval_request", "info", "escalation", "question"}
FROM_HR = {"report", "approval_request", "info", "staffing_request", "tool_request"}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hired") / "nexus"
    shutil.copytree(PACKS / "nexus", folder)
    text = f"role: hr_worker\nreports_to: {org.HR}\n"
    (folder / "agents/recruiter.yaml").write_text(text, encoding="utf-8")
    assert review_pack(folder).problems == []
    return policy_of(sound_pack(folder))


def sent(policy, sender, recipient):
    one, other = policy.agents[sender], policy.agents[recipient]
    return {
        kind
        for kind in policy.mail_types
        if isinstance(can_mail(one, other, kind, policy, []), Allow)
    }


def test_no_agent_holds_the_role_in_the_pack():
    assert "hr_worker" not in {one.role for one in sound_pack(PACKS / "nexus").staff}


class TestARecruiterOnTheFirstDay:
    def test_writes_to_its_superior_and_is_written_to(self, policy):
        assert sent(policy, "recruiter", org.HR) == TO_SUPERIOR
        assert sent(policy, org.HR, "recruiter") == FROM_HR

    @pytest.mark.parametrize("other", [agent for agent in org.AGENTS if agent != org.HR])
    def test_writes_to_no_other_agent_and_none_to_it(self, policy, other):
        assert sent(policy, "recruiter", other) == set()
        assert sent(policy, other, "recruiter") == set()

    def test_has_the_tools_of_any_worker_and_no_code_tool(self, policy):
        bound = policy.role_of(policy.agents["recruiter"]).tools
        assert bound == {"send_mail", "escalate", "read_contract", "submit_report"}
        assert bound.isdisjoint(tools.CODE)

    def test_is_a_worker_at_level_3(self, policy):
        role = policy.role_of(policy.agents["recruiter"])
        assert (role.level, role.kind) == (3, "worker")
