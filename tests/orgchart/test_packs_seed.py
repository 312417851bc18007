"""The files of the group design load as they are printed; what they leave out has a default."""

import re
from io import StringIO

import pytest
from django.core.management import call_command

from orgchart.models import Organisation
from orgchart.packs import diff_pack, load_pack, review_pack
from orgchart.packs.checking import doubts_about_skill, sound_pack
from orgchart.packs.pack import policy_of
from tests.orgchart.world import LOADER, NOW, edited, problems

LEADER = """\
name: "leader"
group: "investment"
is_leader: true     # 必填：标志该 Agent 为组长（每组只能有一个）
system_prompt: "..."
"""
ANALYST = """\
name: "analyst"
group: "investment"
is_leader: false
system_prompt: "..."
skills:             # Optional: 显式配置技能
  - "web_search"
  - "financial_calculator"
"""
PRINTED = {
    "agents/investment_leader.yaml": LEADER,
    "agents/investment_analyst.yaml": ANALYST,
    "agents/coding_leader.yaml": LEADER.replace("investment", "coding"),
    "groups/investment.yaml": "name: Investment\ncontext: 金融分析、市场研究\n",
    "groups/coding.yaml": "group: coding\n",
}


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def wrong(folder, **options):
    return [
        (p.file.removeprefix(f"{folder}/"), p.line, str(p))
        for p in review_pack(folder, **options).problems
    ]


@pytest.fixture(params=["", "config/"], ids=["agents/", "config/agents/"])
def printed(request, tmp_path):
    folder = tmp_path / "soloqueue"
    return written(folder, {f"{request.param}{name}": text for name, text in PRINTED.items()})


class TestTheFilesAsPrinted:
    def test_are_a_whole_organisation(self, printed):
        assert review_pack(printed).problems == []
        policy = policy_of(sound_pack(printed))
        places = {a.handle: (a.role, a.superior, a.address) for a in policy.agents.values()}
        assert policy.organisation == "soloqueue"
        assert places == {
            "coding_leader": ("group_leader", "board", "coding.leader"),
            "investment_leader": ("group_leader", "board", "investment.leader"),
            "investment_analyst": ("group_member", "investment_leader", "investment.analyst"),
        }
        assert policy.groups["coding"].name == "Coding"
        assert ".env" in policy.roles["group_member"].files.deny

    def test_have_the_name_of_the_folder_around_config(self, printed):
        if (printed / "config").is_dir():
            assert sound_pack(printed / "config").organisation == "soloqueue"

    def test_take_another_name_as_an_option(self, printed):
        assert sound_pack(printed, "acme").organisation == "acme"

    def test_need_a_name_that_is_one(self, printed):
        odd = printed.rename(printed.parent / "Solo Queue")
        [problem] = review_pack(odd).problems
        assert "'solo queue' is no name of an organisation" in problem.message
        assert "--organisation NAME" in problem.fix
        assert review_pack(odd, "solo").problems == []

    @pytest.mark.django_db
    def test_load_once_and_come_out_whole(self, printed, tmp_path):
        change = load_pack(printed, caller=LOADER, now=NOW)
        assert not load_pack(printed, caller=LOADER, now=NOW).changed
        call_command("org", "export", "soloqueue", tmp_path / "out", stdout=StringIO())
        again = load_pack(tmp_path / "out", caller=LOADER, now=NOW)
        assert not again.changed
        assert again.after == change.after

    @pytest.mark.django_db
    def test_are_compared_with_the_organisation_that_they_made(self, printed):
        load_pack(printed, caller=LOADER, now=NOW, organisation="acme")
        acme = Organisation.objects.get(slug="acme")
        assert diff_pack(acme, printed, caller=LOADER, now=NOW).is_empty


class TestWhatIsLeftOut:
    def test_is_leader_never_is(self, tmp_path):
        folder = written(tmp_path / "solo", PRINTED)
        text = re.sub("is_leader.*\n", "", ANALYST)
        written(folder, {"agents/investment_analyst.yaml": text})
        [(file, line, said)] = wrong(folder)
        assert (file, line) == ("agents/investment_analyst.yaml", 1)
        assert "is_leader is missing" in said

    def all_lead(self, folder, flag):
        written(folder, PRINTED)
        for name in ("leader", "analyst"):
            path = folder / f"agents/investment_{name}.yaml"
            path.write_text(re.sub("is_leader: \\w+", f"is_leader: {flag}", path.read_text()))
        return wrong(folder)

    def test_a_group_with_two_leaders_is_refused(self, tmp_path):
        [(file, line, said)] = self.all_lead(tmp_path / "solo", "true")
        assert (file, line) == ("groups/investment.yaml", 1)
        assert "has 2 leaders" in said

    def test_members_without_a_leader_have_no_superior(self, tmp_path):
        found = self.all_lead(tmp_path / "solo", "false")
        assert [(file, line) for file, line, _ in found] == [
            ("agents/investment_analyst.yaml", 1),
            ("agents/investment_leader.yaml", 1),
        ]
        assert all("reports_to is missing; add `is_leader: true` to the" in s for _, _, s in found)

    def test_a_leader_reports_to_the_one_agent_above_all_groups(self, tmp_path):
        leader = edited("agents/lead.yaml", ("reports_to: boss\n", ""))
        member = edited("agents/hand_one.yaml", ("reports_to: lead\n", ""))
        assert problems(tmp_path, leader | member) == []
        policy = policy_of(sound_pack(tmp_path))
        assert policy.agents["lead"].superior == "boss"
        assert policy.agents["hand_one"].superior == "lead"

    def test_an_agent_without_a_group_names_role_and_superior(self, tmp_path):
        folder = written(tmp_path / "solo", PRINTED | {"agents/lonely.yaml": "title: Lonely\n"})
        assert [said.split(": ", 1)[1] for _, _, said in wrong(folder)] == [
            "reports_to is missing; add `reports_to: …`",
            "role is missing; add `role: …`",
        ]

    def test_an_agent_that_leads_no_group_has_no_default(self, tmp_path):
        text = "title: Lonely\nis_leader: true\n"
        folder = written(tmp_path / "solo", PRINTED | {"agents/lonely.yaml": text})
        assert len(wrong(folder)) == 2

    def test_a_group_without_its_file_is_no_group(self, tmp_path):
        folder = written(tmp_path / "solo", PRINTED)
        (folder / "groups/coding.yaml").unlink()
        [(file, line, said)] = wrong(folder)
        assert (file, line) == ("agents/coding_leader.yaml", 2)
        assert "there is no group 'coding'" in said

    def test_without_any_file_of_a_group_they_are_those_that_the_agents_name(self, tmp_path):
        agents = {name: text for name, text in PRINTED.items() if name.startswith("agents/")}
        folder = written(tmp_path / "solo", agents)
        assert wrong(folder) == []
        groups = policy_of(sound_pack(folder)).groups
        assert {slug: group.name for slug, group in groups.items()} == {
            "coding": "Coding",
            "investment": "Investment",
        }

    @pytest.mark.parametrize(
        ("name", "message"),
        [("Invest ment", "'Invest ment' is no name of a group"), ("''", "is no name of a group")],
    )
    def test_what_the_agents_name_must_be_a_name(self, tmp_path, name, message):
        folder = written(tmp_path / "solo", {"agents/a.yaml": LEADER.replace("investment", name)})
        assert wrong(folder) != []

    def test_a_mistyped_group_has_no_leader(self, tmp_path):
        agents = {
            "agents/investment_leader.yaml": LEADER,
            "agents/investment_analyst.yaml": ANALYST.replace('"investment"', '"investmnet"'),
        }
        [(file, _, said)] = wrong(written(tmp_path / "solo", agents))
        assert file == "agents/investment_analyst.yaml"
        assert "reports_to is missing" in said

    @pytest.mark.parametrize("text", ["", "# 投资部\n", "---\n"])
    def test_a_file_of_a_group_may_say_nothing(self, tmp_path, text):
        folder = written(tmp_path / "solo", PRINTED | {"groups/coding.yaml": text})
        assert wrong(folder) == []
        assert policy_of(sound_pack(folder)).groups["coding"].name == "Coding"

    def test_a_pack_with_its_own_name_takes_no_other(self, tmp_path):
        problems(tmp_path)
        assert "leave out --organisation" in wrong(tmp_path, organisation="other")[0][2]


class TestSkillsThatAreDoubtful:
    @pytest.fixture
    def doubts(self):
        def say(skill):
            return [(f"the skill {skill} is not installed", "install it")] * (skill != "calm")

        doubts_about_skill.join(say)
        yield
        doubts_about_skill.leave(say)

    @pytest.fixture
    def folder(self, tmp_path):
        return written(tmp_path / "solo", PRINTED)

    def test_are_warnings_with_their_line(self, folder, doubts):
        review = review_pack(folder)
        assert review.problems == []
        said = [(w.line, w.message) for w in review.warnings if "not installed" in w.message]
        assert (7, "the skill financial_calculator is not installed") in said

    def test_are_no_tools(self, folder, doubts):
        assert not [w for w in review_pack(folder).warnings if "web_search" in w.message]

    def test_are_printed_and_refuse_nothing(self, folder, doubts):
        out = StringIO()
        call_command("org", "check", folder, stdout=out)
        lines = out.getvalue().splitlines()
        place = (
            f"{folder}/agents/investment_analyst.yaml:7: warning: the skill financial_calculator"
        )
        assert any(line.startswith(place) for line in lines)
        assert lines[-1] == f"{folder}: nothing is wrong"
