"""What `org check` says of the skills that agents list."""

from io import StringIO

import pytest
from django.core.management import call_command

from tests.orgchart.world import edited, write_pack
from workspace.skills.warnings import doubts_about

SKILL = "---\nname: {name}\ndescription: Does it.\nallowed_tools: [{tools}]\n---\nDo it.\n"


@pytest.fixture
def install(tmp_path, settings):
    settings.NEXUS_SKILL_FOLDERS = [tmp_path / "skills"]

    def add(name, tools="git_commit", text=SKILL):
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text.format(name=name, tools=tools))

    return add


def test_nothing_where_it_is_installed_and_its_tools_exist(install):
    install("juggling")
    assert doubts_about("juggling") == []


def test_that_it_is_not_installed(install):
    install("juggling")
    assert [message for message, _ in doubts_about("jugling")] == [
        "the skill jugling is not installed"
    ]


def test_each_tool_that_does_not_exist(install):
    install("juggling", tools="git_comit, read_file, fly")
    assert [message for message, _ in doubts_about("juggling")] == [
        "the skill juggling allows git_comit, and there is no such tool",
        "the skill juggling allows fly, and there is no such tool",
    ]


def test_what_of_its_file_has_no_effect(install):
    install("juggling", tools="'Bash(git add:*)'")
    [(message, _)] = doubts_about("juggling")
    assert message == (
        "the skill juggling: allowed_tools: Bash(git add:*) allows nothing here: "
        "patterns cannot be kept"
    )


def test_that_its_file_is_wrong(install):
    install("juggling", text="no front matter")
    [(message, _)] = doubts_about("juggling")
    assert message.startswith("the skill juggling cannot be used: it must begin")


def test_is_printed_at_the_line_of_the_skill_and_refuses_nothing(install, tmp_path):
    install("juggling", tools="fly")
    pack = write_pack(
        tmp_path / "pack", edited("agents/hand_one.yaml", ("juggling", "juggling, x"))
    )
    out = StringIO()
    call_command("org", "check", pack, stdout=out)
    place = f"{pack}/agents/hand_one.yaml:8: warning: the skill"
    first, second, last = out.getvalue().splitlines()
    assert first.startswith(f"{place} juggling allows fly")
    assert second.startswith(f"{place} x is not installed")
    assert last == f"{pack}: nothing is wrong"
