"""A pack takes no built-in tool away and opens no protected path, whatever its files say."""

import pytest

from core.decision import Allow
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.paths import can_touch
from orgchart.policy.vocabulary import Access
from tests.orgchart.world import edited, problems, write_pack

ORG, ROLES = "organisation.yaml", "roles.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        (ROLES, "[git_push]", "[return_result]", 20),
        (ROLES, "[git_push]", "[git_push, read_inbox]", 20),
        (ORG, "{tool: web_search, role: lead", "{tool: use_skill, role: lead", 8),
        (ORG, "{tool: web_search, role: lead, modes: []", "{tool: read_mail, modes: [coding]", 8),
    ],
)
def test_a_built_in_tool_is_neither_denied_nor_restricted(tmp_path, file, old, new, line):
    [(name, at, said)] = problems(tmp_path, edited(file, (old, new)))
    assert (name, at) == (file, line)
    assert "is built in and cannot be denied or restricted; take it out" in said


@pytest.mark.parametrize(
    "scope",
    ["agents/hand_two/", "agents/", ".env", "docs/.env", "keys/id_rsa", ".git/", ".github/"],
)
def test_a_scope_names_no_protected_path(tmp_path, scope):
    changes = edited(ROLES, ('write: ["agents/{agent}/"]', f'write: ["{scope}"]'))
    [(name, at, said)] = problems(tmp_path, changes)
    assert (name, at) == (ROLES, 15)
    assert "is protected" in said or "only a role with manage_ci_config" in said


@pytest.mark.parametrize("path", ["docs/.env", "agents/hand_one/tls.pem", "docs/credentials.json"])
@pytest.mark.parametrize("access", Access)
def test_a_pack_that_lists_no_denials_lifts_none(tmp_path, path, access):
    text = edited(ROLES, ('deny: [.env, "*.pem", secret/place/]', "deny: []"))
    policy = policy_of(sound_pack(write_pack(tmp_path, text)))
    files = policy.roles["hand"].files
    decision = can_touch(path, access, agent=policy.agents["hand_one"], files=files)
    assert not isinstance(decision, Allow)
    assert "is denied to hand" in decision.message
