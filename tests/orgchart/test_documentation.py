"""What the page on packs shows is what the loader reads."""

import re
from pathlib import Path

import yaml

from orgchart.packs.forms import AgentFile, RoleForm
from tests.orgchart.world import ACME, problems

PAGE = (Path(__file__).parents[2] / "docs/packs.md").read_text(encoding="utf-8")
BLOCKS = {
    name.strip(): text
    for name, text in re.findall(r"`([^`\n]+)`[^\n]*\n```yaml\n(.*?)```", PAGE, re.DOTALL)
}


def test_every_key_of_a_role_and_of_an_agent_is_described():
    maker = yaml.safe_load(BLOCKS["roles.yaml"])["roles"]["maker"]
    assert tuple(maker) == tuple(RoleForm.model_fields)
    assert set(yaml.safe_load(BLOCKS["agents/<handle>.yaml"])) == set(AgentFile.model_fields.keys())


def test_what_is_shown_can_be_loaded(tmp_path):
    others = ACME["roles.yaml"].split("  hand:\n")[0].removeprefix("roles:\n")
    shown = {
        "organisation.yaml": BLOCKS["organisation.yaml"].replace("hr_manager", "boss"),
        "roles.yaml": BLOCKS["roles.yaml"] + others,
        "mail-protocol.yaml": BLOCKS["mail-protocol.yaml"].replace(
            "types:  ", "types:\n  question: {senders: all}\n#", 1
        ),
        "agents/hand_one.yaml": BLOCKS["agents/<handle>.yaml"],
        "agents/hand_two.yaml": ACME["agents/hand_two.yaml"].replace("role: hand", "role: maker"),
    }
    assert problems(tmp_path, shown) == []
